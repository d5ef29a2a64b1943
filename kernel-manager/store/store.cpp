// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/store/store.hpp"

#include "protocol/support/time.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

namespace cellkeep::store {

namespace asio = boost::asio;

namespace {

std::size_t bytes_of(const SessionRecord& record) {
    return sizeof record + record.metadata.size();
}

std::size_t bytes_of(const ExecutionRecord& record) {
    return sizeof record + record.metadata.size() + record.reasoning.size() +
           record.error_message.size();
}

const std::string& id_of(const Record& record) {
    return std::visit([](const auto& one) -> const std::string& { return one.id; }, record);
}

std::size_t bytes_of(const Record& record) {
    return std::visit([](const auto& one) { return bytes_of(one); }, record);
}

/// The beginning of an execution, which never replaces its end.
bool is_beginning(const Record& record) {
    const auto* execution = std::get_if<ExecutionRecord>(&record);
    return execution != nullptr && execution->status.empty();
}

/// Where a damaged file goes: no earlier one is overwritten. kLimitExceeded if there are too many.
Result<std::string> free_damaged_name(const std::string& path) {
    for (std::size_t number = 1; number <= kDamagedFilesMax; ++number) {
        std::string name = path + ".damaged" + (number == 1 ? "" : "." + std::to_string(number));
        if (::access(name.c_str(), F_OK) != 0 && errno == ENOENT) {
            return name;
        }
    }
    return Error(
        ErrorCode::kLimitExceeded,
        "store: " + path + " is damaged, and so were " + std::to_string(kDamagedFilesMax) +
            " before it",
        "Remove the .damaged files.");
}

/// What belongs to the database goes with it.
Status put_aside(const std::string& path, const std::string& name) {
    for (const char* suffix : {"-wal", "-shm"}) {
        // Ignored: there need not be such a file.
        (void)std::rename((path + suffix).c_str(), (name + suffix).c_str());
    }
    if (std::rename(path.c_str(), name.c_str()) != 0) {
        return Error::from_errno(errno, "rename(" + path + ")");
    }
    return ok();
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(
    const std::string& path, std::function<void(const std::string&)> log, StoreLimits limits) {
    auto database = Database::open(path);
    if (database.has_error() && database.error().code() == ErrorCode::kProtocol) {
        BOOST_OUTCOME_TRY(const std::string aside, free_damaged_name(path));
        log(database.error().message() + "; it is put aside as " + aside);
        BOOST_OUTCOME_TRY(put_aside(path, aside));
        database = Database::open(path);
    }
    BOOST_OUTCOME_TRY(auto opened, std::move(database));
    BOOST_OUTCOME_TRY(opened->mark_server_death(to_iso8601(std::chrono::system_clock::now())));
    return std::unique_ptr<Store>(new Store(std::move(opened), std::move(log), limits));
}

Store::Store(
    std::unique_ptr<Database> database,
    std::function<void(const std::string&)> log,
    StoreLimits limits)
    : database_(std::move(database)), log_(std::move(log)), limits_(limits) {
    thread_ = std::thread([this] { work(); });
}

Store::~Store() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Store::put(Record record) {
    const std::size_t bytes = bytes_of(record);
    bool wake = false;
    {
        const std::lock_guard lock(mutex_);
        if (replace_waiting(record, bytes)) {
            return;
        }
        if (queue_.size() >= limits_.queue_max || queue_bytes_ + bytes > limits_.queue_bytes_max) {
            ++lost_;
            return;
        }
        queue_bytes_ += bytes;
        places_.insert_or_assign(id_of(record), queue_.size());
        queue_.push_back(std::move(record));
        // The thread knows of the first, and is gathering; half a queue is enough of that.
        wake = queue_.size() == 1 || is_much_waiting();
    }
    if (wake) {
        changed_.notify_all();
    }
}

/// In the place of the one before it, so that a listing keeps the order of the beginnings. False if
/// none waits, or if the new one would not fit where the old one does.
bool Store::replace_waiting(Record& record, std::size_t bytes) {
    const auto place = places_.find(id_of(record));
    if (place == places_.end()) {
        return false;
    }
    Record& old = queue_[place->second];
    if (is_beginning(record) && !is_beginning(old)) {
        return true;
    }
    const std::size_t others = queue_bytes_ - bytes_of(old);
    if (others + bytes > limits_.queue_bytes_max) {
        return false;
    }
    queue_bytes_ = others + bytes;
    old = std::move(record);
    return true;
}

std::vector<Record> Store::take_queue() {
    places_.clear();
    queue_bytes_ = 0;
    return std::exchange(queue_, {});
}

bool Store::is_much_waiting() const {
    return queue_.size() >= limits_.queue_max / 2 || queue_bytes_ >= limits_.queue_bytes_max / 2;
}

std::string Store::trouble() const {
    const std::lock_guard lock(mutex_);
    return trouble_;
}

std::uint64_t Store::lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
}

void Store::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return stopping_ || !queue_.empty() || !jobs_.empty(); });
        // A commit costs as much as many rows, so what comes in a row is committed together.
        const auto due =
            std::max(std::chrono::steady_clock::now() + kGatherTime, committed_at_ + kCommitPeriod);
        changed_.wait_until(
            lock, due, [this] { return stopping_ || !jobs_.empty() || is_much_waiting(); });
        const std::vector<Record> records = take_queue();
        const std::deque<Job> jobs = std::exchange(jobs_, {});
        const bool last = stopping_;
        lock.unlock();
        if (!records.empty()) {
            write(records);
            committed_at_ = std::chrono::steady_clock::now();
        }
        for (const Job& job : jobs) {
            job(*database_);
        }
        lock.lock();
        if (last) {
            return;
        }
    }
}

void Store::write(const std::vector<Record>& records) {
    const Status written = database_->write(records, limits_.retention);
    if (written.has_error()) {
        const std::lock_guard lock(mutex_);
        lost_ += records.size();
    }
    set_trouble(written.has_error() ? written.error().message() : std::string());
}

void Store::set_trouble(const std::string& trouble) {
    {
        const std::lock_guard lock(mutex_);
        if (trouble.empty() == trouble_.empty()) {
            return;
        }
        trouble_ = trouble;
    }
    log_(
        trouble.empty() ? "store: it can be written again"
                        : trouble + "; executions go on, their records are lost");
}

template <typename Answer>
asio::awaitable<Answer> Store::ask(std::function<Answer(Database&)> question) {
    struct Asked {
        explicit Asked(const asio::any_io_executor& executor)
            : timer(executor, asio::steady_timer::time_point::max()) {}
        asio::steady_timer timer;  // cancelled when the answer is there
        std::optional<Answer> answer;
    };
    const auto executor = co_await asio::this_coro::executor;
    const auto asked = std::make_shared<Asked>(executor);
    {
        const std::lock_guard lock(mutex_);
        // The thread hands its part of asked over: the timer may only go where io runs.
        jobs_.push_back([waiting = asked, executor, question = std::move(question)](
                            Database& database) mutable {
            auto answer = std::make_shared<Answer>(question(database));
            asio::post(executor, [waiting = std::move(waiting), answer] {
                waiting->answer.emplace(std::move(*answer));
                waiting->timer.cancel();
            });
        });
    }
    changed_.notify_all();
    while (!asked->answer.has_value()) {
        boost::system::error_code cancelled;  // that is how the answer wakes us
        co_await asked->timer.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
    co_return std::move(*asked->answer);
}

asio::awaitable<Result<std::optional<SessionRecord>>> Store::find_session(std::string id) {
    std::function<Result<std::optional<SessionRecord>>(Database&)> question =
        [id = std::move(id)](Database& database) { return database.find_session(id); };
    return ask(std::move(question));
}

asio::awaitable<Result<std::optional<ExecutionRecord>>> Store::find_execution(std::string id) {
    std::function<Result<std::optional<ExecutionRecord>>(Database&)> question =
        [id = std::move(id)](Database& database) { return database.find_execution(id); };
    return ask(std::move(question));
}

asio::awaitable<Result<std::vector<ExecutionRecord>>> Store::list_executions(
    std::string session_id, std::string after, std::size_t limit) {
    std::function<Result<std::vector<ExecutionRecord>>(Database&)> question =
        [session_id = std::move(session_id), after = std::move(after), limit](Database& database) {
            return database.list_executions(session_id, after, limit);
        };
    return ask(std::move(question));
}

}  // namespace cellkeep::store
