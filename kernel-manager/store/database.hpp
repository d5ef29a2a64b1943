// SPDX-License-Identifier: Apache-2.0
//
// The store's SQLite file: its tables and every statement on them. Blocks; one thread at a time.
// The only place that sees SQLite: its exceptions end here.
#pragma once

#include "kernel-manager/store/records.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cellkeep::store {

/// Another process (a backup, a reader) may hold the file for so long before a statement fails.
inline constexpr std::chrono::milliseconds kBusyTimeout{2000};

using Record = std::variant<SessionRecord, ExecutionRecord>;

struct Retention {
    std::size_t sessions = 0;
    std::size_t executions = 0;
};

class Database {
 public:
    /// Makes the file (0600) and its tables if they are missing. kProtocol if it is no such
    /// database or a damaged one; kSystem if it cannot be used now: locked, or its disk fails.
    static Result<std::unique_ptr<Database>> open(const std::string& path);
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;
    ~Database();

    /// Writes all records in one transaction. A record replaces one with the same id, except that
    /// an execution's beginning never replaces its end. Then deletes the oldest beyond the
    /// retention.
    Status write(const std::vector<Record>& records, const Retention& retention);
    /// What had not ended is said to have ended with the server, now.
    Status mark_server_death(const std::string& now);

    Result<std::optional<SessionRecord>> find_session(const std::string& id);
    Result<std::optional<ExecutionRecord>> find_execution(const std::string& id);
    /// Oldest first, those after this one ("": from the start), at most limit. kNotFound if the
    /// session has none of that id, or no longer.
    Result<std::vector<ExecutionRecord>> list_executions(
        const std::string& session_id, const std::string& after, std::size_t limit);

 private:
    struct Handle;
    explicit Database(std::unique_ptr<Handle> handle);
    std::unique_ptr<Handle> handle_;
};

}  // namespace cellkeep::store
