// SPDX-License-Identifier: Apache-2.0
//
// The executions of one session that are known by their id: those that wait and run, and the last
// that finished, within limits::kExecutionHistoryMax and its bytes. Also what an idempotency key
// stands for, as long as its execution is known. Not thread-safe.
#pragma once

#include "kernel-manager/session/running_execution.hpp"
#include "protocol/support/result.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

/// What makes two requests the same one, as a digest. Everything counts but the key itself.
std::string digest_of(const ExecutionRequest& request);

class ExecutionBook {
 public:
    using Entry = std::shared_ptr<Execution>;

    /// What this key stands for; null if nothing. kInvalidArgument ("idempotency_key: …") if it
    /// stands for another request.
    Result<Entry> find_key(const std::string& key, const std::string& digest) const;
    /// An accepted one; key "" for none.
    void add(const Entry& execution, const std::string& key, std::string digest);
    /// One of them has finished: forgets what is past the bounds, oldest first.
    void settle();

    Entry find(const std::string& id) const;
    /// In the order in which they were accepted.
    std::vector<Entry> list() const { return {entries_.begin(), entries_.end()}; }

 private:
    struct Keyed {
        Entry execution;
        std::string digest;
    };
    std::deque<Entry> entries_;
    std::map<std::string, Keyed> keys_;
};

}  // namespace cellkeep::session
