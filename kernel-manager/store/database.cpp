// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/store/database.hpp"

#include "protocol/support/unique_fd.hpp"

#include <fcntl.h>

#include <SQLiteCpp/SQLiteCpp.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <optional>
#include <sqlite3.h>
#include <utility>

namespace cellkeep::store {

namespace {

constexpr const char* kSchema = R"(
CREATE TABLE IF NOT EXISTS sessions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, owner TEXT NOT NULL,
    language TEXT NOT NULL, metadata TEXT NOT NULL, created_at TEXT NOT NULL,
    ended_at TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS executions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, session_id TEXT NOT NULL,
    owner TEXT NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL, started_at TEXT NOT NULL,
    finished_at TEXT NOT NULL, code_sha256 TEXT NOT NULL, reasoning TEXT NOT NULL,
    metadata TEXT NOT NULL, error_kind TEXT NOT NULL, error_name TEXT NOT NULL,
    error_message TEXT NOT NULL, wall_ms REAL NOT NULL, cpu_ms REAL NOT NULL,
    queued_ms REAL NOT NULL, memory_peak_bytes INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS executions_of_session ON executions (session_id, number);
)";

/// An update keeps the number, and so the place in a listing.
constexpr const char* kPutSession = R"(
INSERT INTO sessions (id, owner, language, metadata, created_at, ended_at, reason)
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET ended_at = excluded.ended_at,
    reason = excluded.reason, metadata = excluded.metadata
)";

/// An execution that has ended stays ended, even if its beginning is written again.
constexpr const char* kPutExecution = R"(
INSERT INTO executions (id, session_id, owner, status, created_at, started_at, finished_at,
    code_sha256, reasoning, metadata, error_kind, error_name, error_message, wall_ms, cpu_ms,
    queued_ms, memory_peak_bytes)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
    status = excluded.status, started_at = excluded.started_at,
    finished_at = excluded.finished_at, error_kind = excluded.error_kind,
    error_name = excluded.error_name, error_message = excluded.error_message,
    wall_ms = excluded.wall_ms, cpu_ms = excluded.cpu_ms, queued_ms = excluded.queued_ms,
    memory_peak_bytes = excluded.memory_peak_bytes
    WHERE excluded.status <> ''
)";

constexpr const char* kReadExecution =
    "SELECT id, session_id, owner, status, created_at, started_at, finished_at, code_sha256, "
    "reasoning, metadata, error_kind, error_name, error_message, wall_ms, cpu_ms, queued_ms, "
    "memory_peak_bytes FROM executions ";

/// Its columns that are text, in their order in the table.
template <typename Record>
auto texts_of(Record& record) {
    return std::array{
        &record.id,
        &record.session_id,
        &record.owner,
        &record.status,
        &record.created_at,
        &record.started_at,
        &record.finished_at,
        &record.code_sha256,
        &record.reasoning,
        &record.metadata,
        &record.error_kind,
        &record.error_name,
        &record.error_message};
}

ExecutionRecord read_execution(SQLite::Statement& row) {
    ExecutionRecord record;
    int column = 0;
    for (std::string* field : texts_of(record)) {
        *field = row.getColumn(column++).getString();
    }
    record.wall_ms = row.getColumn(column++).getDouble();
    record.cpu_ms = row.getColumn(column++).getDouble();
    record.queued_ms = row.getColumn(column++).getDouble();
    record.memory_peak_bytes = static_cast<std::uint64_t>(row.getColumn(column).getInt64());
    return record;
}

Error store_error(const std::exception& failure) {
    return {ErrorCode::kSystem, std::string("store: ") + failure.what()};
}

/// kProtocol only where the file itself is no sound database: one that is locked, or on a disk that
/// fails or is full, is as good as before when that is over.
Error open_error(const SQLite::Exception& failure) {
    const int primary = failure.getErrorCode() & 0xff;  // sqlite3_extended_errcode(3)
    const bool damaged = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB;
    return {
        damaged ? ErrorCode::kProtocol : ErrorCode::kSystem,
        std::string("store: ") + failure.what()};
}

/// Leaves a compiled statement ready for its next use, also after a failure.
class Finish {
 public:
    explicit Finish(SQLite::Statement& statement) : statement_(statement) {}
    ~Finish() {
        (void)statement_.tryReset();  // Ignored: it repeats the failure that exec() has thrown.
    }
    Finish(const Finish&) = delete;
    Finish& operator=(const Finish&) = delete;

 private:
    SQLite::Statement& statement_;
};

}  // namespace

struct Database::Handle {
    explicit Handle(const std::string& path)
        : database(
              path,
              SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE,
              static_cast<int>(kBusyTimeout.count())) {}
    SQLite::Database database;
    // Compiled once; each execution is written twice. They go before the database does.
    std::optional<SQLite::Statement> put_session;
    std::optional<SQLite::Statement> put_execution;
    // Counted since the last deletion of old records; without a value this process made none yet.
    std::optional<std::size_t> sessions_written;
    std::optional<std::size_t> executions_written;

    /// Once the tables are there.
    void compile() {
        put_session.emplace(database, kPutSession);
        put_execution.emplace(database, kPutExecution);
    }

    void put(const SessionRecord& record) {
        SQLite::Statement& statement = *put_session;
        const Finish finish(statement);
        int at = 1;
        for (const std::string* field :
             {&record.id,
              &record.owner,
              &record.language,
              &record.metadata,
              &record.created_at,
              &record.ended_at,
              &record.reason}) {
            statement.bind(at++, *field);
        }
        (void)statement.exec();
    }

    void put(const ExecutionRecord& record) {
        SQLite::Statement& statement = *put_execution;
        const Finish finish(statement);
        int at = 1;
        for (const std::string* field : texts_of(record)) {
            statement.bind(at++, *field);
        }
        statement.bind(at++, record.wall_ms);
        statement.bind(at++, record.cpu_ms);
        statement.bind(at++, record.queued_ms);
        statement.bind(at, static_cast<std::int64_t>(record.memory_peak_bytes));
        (void)statement.exec();
    }

    /// Not each time: finding the oldest walks over all that is kept. written: of this table, since
    /// then; it may hold a hundredth more than the retention says.
    void forget(
        const char* table,
        std::size_t kept,
        std::optional<std::size_t>& written,
        std::size_t added) const {
        if (written.has_value()) {
            *written += added;
            if (*written <= kept / 100) {
                return;
            }
        }
        written = 0;
        const std::string name(table);
        SQLite::Statement statement(
            database,
            "DELETE FROM " + name + " WHERE number <= (SELECT number FROM " + name +
                " ORDER BY number DESC LIMIT 1 OFFSET ?)");
        statement.bind(1, static_cast<std::int64_t>(kept));
        (void)statement.exec();
    }
};

Database::Database(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Database::~Database() = default;

Result<std::unique_ptr<Database>> Database::open(const std::string& path) {
    // SQLite would make it readable for everybody.
    const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) {
        return Error::from_errno(errno, "open(" + path + ")");
    }
    try {
        auto handle = std::make_unique<Handle>(path);
        // What is committed outlives this process; only a power cut may lose the newest.
        handle->database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
        SQLite::Statement check(handle->database, "PRAGMA quick_check(1)");
        if (!check.executeStep() || check.getColumn(0).getString() != "ok") {
            return Error(ErrorCode::kProtocol, "store: " + path + " is damaged");
        }
        handle->database.exec(kSchema);
        handle->compile();
        return std::unique_ptr<Database>(new Database(std::move(handle)));
    } catch (const SQLite::Exception& failure) {
        return open_error(failure);
    }
}

Status Database::write(const std::vector<Record>& records, const Retention& retention) {
    try {
        SQLite::Transaction transaction(handle_->database);
        for (const Record& record : records) {
            std::visit([this](const auto& one) { handle_->put(one); }, record);
        }
        const auto sessions = static_cast<std::size_t>(
            std::count_if(records.begin(), records.end(), [](const Record& record) {
                return std::holds_alternative<SessionRecord>(record);
            }));
        handle_->forget("sessions", retention.sessions, handle_->sessions_written, sessions);
        handle_->forget(
            "executions",
            retention.executions,
            handle_->executions_written,
            records.size() - sessions);
        transaction.commit();
        return ok();
    } catch (const SQLite::Exception& failure) {
        return store_error(failure);
    }
}

Status Database::mark_server_death(const std::string& now) {
    try {
        SQLite::Transaction transaction(handle_->database);
        SQLite::Statement executions(
            handle_->database,
            "UPDATE executions SET status = 'interrupted', finished_at = ?, error_kind = "
            "'server_died', error_name = 'ServerDied', error_message = 'The server ended while "
            "this waited or ran.' WHERE status = ''");
        executions.bind(1, now);
        (void)executions.exec();
        SQLite::Statement sessions(
            handle_->database,
            "UPDATE sessions SET ended_at = ?, reason = 'server_died' WHERE ended_at = ''");
        sessions.bind(1, now);
        (void)sessions.exec();
        transaction.commit();
        return ok();
    } catch (const SQLite::Exception& failure) {
        return store_error(failure);
    }
}

Result<std::optional<SessionRecord>> Database::find_session(const std::string& id) {
    try {
        SQLite::Statement row(
            handle_->database,
            "SELECT id, owner, language, metadata, created_at, ended_at, reason FROM sessions "
            "WHERE id = ?");
        row.bind(1, id);
        if (!row.executeStep()) {
            return std::optional<SessionRecord>();
        }
        SessionRecord record;
        int column = 0;
        for (std::string* field :
             {&record.id,
              &record.owner,
              &record.language,
              &record.metadata,
              &record.created_at,
              &record.ended_at,
              &record.reason}) {
            *field = row.getColumn(column++).getString();
        }
        return std::optional(std::move(record));
    } catch (const SQLite::Exception& failure) {
        return store_error(failure);
    }
}

Result<std::optional<ExecutionRecord>> Database::find_execution(const std::string& id) {
    try {
        SQLite::Statement row(handle_->database, std::string(kReadExecution) + "WHERE id = ?");
        row.bind(1, id);
        if (!row.executeStep()) {
            return std::optional<ExecutionRecord>();
        }
        return std::optional(read_execution(row));
    } catch (const SQLite::Exception& failure) {
        return store_error(failure);
    }
}

Result<std::vector<ExecutionRecord>> Database::list_executions(
    const std::string& session_id, const std::string& after, std::size_t limit) {
    try {
        std::int64_t place = 0;
        if (!after.empty()) {
            SQLite::Statement cursor(
                handle_->database, "SELECT number FROM executions WHERE id = ? AND session_id = ?");
            cursor.bind(1, after);
            cursor.bind(2, session_id);
            if (!cursor.executeStep()) {
                return Error(ErrorCode::kNotFound, "store: there is no execution " + after);
            }
            place = cursor.getColumn(0).getInt64();
        }
        SQLite::Statement row(
            handle_->database,
            std::string(kReadExecution) +
                "WHERE session_id = ?1 AND number > ?2 ORDER BY number LIMIT ?3");
        row.bind(1, session_id);
        row.bind(2, place);
        row.bind(3, static_cast<std::int64_t>(limit));
        std::vector<ExecutionRecord> records;
        while (row.executeStep()) {
            records.push_back(read_execution(row));
        }
        return records;
    } catch (const SQLite::Exception& failure) {
        return store_error(failure);
    }
}

}  // namespace cellkeep::store
