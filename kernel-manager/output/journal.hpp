// SPDX-License-Identifier: Apache-2.0
//
// The bounded, sequence-numbered record of one session's iopub messages. A client that was away
// asks for "since N". It gets the entries that are kept, in order, and the number of those that
// were dropped. Stream text that follows stream text has been joined before (StreamJoiner). Not
// thread-safe.
#pragma once

#include "protocol/message.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace cellkeep::session {

struct OutputEntry {
    std::uint64_t sequence = 0;  // from 1, without gaps
    protocol::Message message;
};

class OutputJournal {
 public:
    OutputJournal(std::size_t messages_max, std::size_t bytes_max);

    /// Records and returns the entry; drops the oldest ones past a bound and counts them.
    OutputEntry append(protocol::Message message);

    struct Replay {
        std::vector<OutputEntry> entries;  // sequence > since, oldest first
        std::uint64_t missed = 0;          // entries after `since` that are no longer kept
    };
    Replay since(std::uint64_t sequence) const;

    /// As another program in this process has kept it: the newest entries, oldest first, and how
    /// many were dropped before them.
    void go_on(std::uint64_t last_sequence, std::vector<protocol::Message> newest);
    /// The newest that together have at most so many bytes, oldest first.
    std::vector<protocol::Message> newest(std::size_t bytes_max) const;

    std::uint64_t last_sequence() const { return next_sequence_ - 1; }
    std::uint64_t dropped() const { return dropped_; }
    std::size_t bytes() const { return bytes_; }
    std::size_t size() const { return entries_.size(); }

 private:
    std::size_t messages_max_;
    std::size_t bytes_max_;
    std::deque<OutputEntry> entries_;
    std::size_t bytes_ = 0;
    std::uint64_t next_sequence_ = 1;
    std::uint64_t dropped_ = 0;
};

}  // namespace cellkeep::session
