// SPDX-License-Identifier: Apache-2.0
//
// The executions of one session that are known by their id: those that wait and run, and the last
// that finished, within limits::kExecutionHistoryMax and its bytes. Also what an idempotency key
// stands for, for longer than its answer is kept (limits::kIdempotencyKeysMax). Not thread-safe.
#pragma once

#include "kernel-manager/execution/running_execution.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

/// What makes two requests the same one, as a digest: what runs, not why. The key itself, the
/// reasoning and the metadata do not count.
std::string digest_of(const ExecutionRequest& request);

/// kNotFound (in the field "idempotency_key"): the key's request has run and must not run again.
Error forgotten_answer(const std::string& execution_id);

class ExecutionBook {
 public:
    using Entry = std::shared_ptr<Execution>;

    /// What this key stands for; null if nothing. kInvalidArgument (in the field "idempotency_key")
    /// if it stands for another request, forgotten_answer() if its execution is no longer known.
    Result<Entry> find_key(const std::string& key, const std::string& digest) const;
    /// An accepted one; key "" for none.
    void add(const Entry& execution, const std::string& key, std::string digest);
    /// One of them has finished: forgets what is past the bounds, oldest first.
    void settle();

    /// What the keys stand for, oldest first: for another program in this process, and from one.
    struct PassedKey {
        std::string key;
        std::string id;  // of the execution, which may be forgotten
        std::string digest;
    };
    std::vector<PassedKey> keys() const;
    /// Entries that run or have finished, in their order.
    void go_on(const std::vector<Entry>& passed, std::vector<PassedKey> keys);

    Entry find(const std::string& id) const;
    /// In the order in which they were accepted.
    std::vector<Entry> list() const;

 private:
    struct Keyed {
        Entry execution;  // null: forgotten
        std::string id;   // the execution's
        std::string digest;
    };
    struct Kept {
        Entry execution;
        bool counted = false;  // it has finished, and the sums below have it
        std::uint64_t bytes = 0;
        std::uint64_t event_bytes = 0;
    };
    void count_finished();
    void forget_oldest();

    std::deque<Kept> entries_;
    std::size_t finished_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t event_bytes_ = 0;
    std::map<std::string, Keyed> keys_;
    std::deque<std::string> keys_by_age_;
};

}  // namespace cellkeep::session
