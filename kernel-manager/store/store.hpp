// SPDX-License-Identifier: Apache-2.0
//
// The server's memory on disk, written and read on a thread of its own so that no disk ever holds
// up an execution: records wait in a bounded queue and are committed in batches. What cannot be
// written (disk full) is counted and said once; the server goes on. A damaged file is put aside and
// a new one begun. put() from one thread.
#pragma once

#include "kernel-manager/store/database.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace cellkeep::store {

/// After a pause, a record waits so long for others to be committed with it.
inline constexpr std::chrono::milliseconds kGatherTime{2};
/// Between two commits, unless a question or half a queue waits. What a server that is killed can
/// lose is therefore what came within this time; what came after a pause, only kGatherTime.
inline constexpr std::chrono::milliseconds kCommitPeriod{100};

/// Damaged files that are kept beside the store, each under a name of its own.
inline constexpr std::size_t kDamagedFilesMax = 8;

struct StoreLimits {
    std::size_t queue_max = limits::kStoreQueueMax;
    std::size_t queue_bytes_max = limits::kStoreQueueBytesMax;
    Retention retention{limits::kStoredSessionsMax, limits::kStoredExecutionsMax};
};

class Store {
 public:
    /// Opens the file and marks what a server that died has left unfinished. A damaged one is put
    /// aside as PATH.damaged, PATH.damaged.2 and so on, and a new one begun; one that only cannot
    /// be used now is left alone and an error. log gets one line per change of health, from any
    /// thread.
    static Result<std::unique_ptr<Store>> open(
        const std::string& path,
        std::function<void(const std::string&)> log,
        StoreLimits limits = {});
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;
    /// Writes what still waits.
    ~Store();

    /// Never blocks; past a bound the record is lost and counted. A record takes the place of one
    /// with the same id that still waits: an execution that begins and ends between two commits is
    /// one row to write.
    void put(Record record);

    /// What is wrong, or empty. Any thread.
    std::string trouble() const;
    std::uint64_t lost() const;

    // Each sees everything that was put before it. Errors are those of Database.
    boost::asio::awaitable<Result<std::optional<SessionRecord>>> find_session(std::string id);
    boost::asio::awaitable<Result<std::optional<ExecutionRecord>>> find_execution(std::string id);
    boost::asio::awaitable<Result<std::vector<ExecutionRecord>>> list_executions(
        std::string session_id, std::string after, std::size_t limit);

 private:
    using Job = std::function<void(Database&)>;

    Store(
        std::unique_ptr<Database> database,
        std::function<void(const std::string&)> log,
        StoreLimits limits);
    template <typename Answer>
    boost::asio::awaitable<Answer> ask(std::function<Answer(Database&)> question);
    void work();
    // Precondition of these three: mutex_ is held.
    bool is_much_waiting() const;
    bool replace_waiting(Record& record, std::size_t bytes);
    std::vector<Record> take_queue();
    void write(const std::vector<Record>& records);
    void set_trouble(const std::string& trouble);

    std::unique_ptr<Database> database_;
    std::function<void(const std::string&)> log_;
    StoreLimits limits_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Record> queue_;
    std::unordered_map<std::string, std::size_t> places_;  // in queue_, by the record's id
    std::size_t queue_bytes_ = 0;
    std::chrono::steady_clock::time_point committed_at_;  // the thread's own
    std::deque<Job> jobs_;
    std::string trouble_;
    std::uint64_t lost_ = 0;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace cellkeep::store
