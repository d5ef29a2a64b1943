// SPDX-License-Identifier: Apache-2.0
//
// The bounded, sequence-numbered record of what one execution said, for clients that stream it, at
// once or later. It never loses an event silently: a reader of "after N" learns how many it can no
// longer get. The newest event is always kept, so the last word (finished) is. Not thread-safe.
#pragma once

#include "protocol/limits.hpp"
#include "protocol/text_pieces.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

struct ExecutionEvent {
    std::uint64_t sequence = 0;  // from 1, without gaps
    std::string type;            // "started", "stdout", …: the wire's names
    /// The other members, as the text of one JSON object without line ends. A guest's part of it
    /// is the bytes that came.
    protocol::TextPieces data;
};

class EventJournal {
 public:
    explicit EventJournal(
        std::size_t events_max = limits::kExecutionEventsMax,
        std::size_t bytes_max = limits::kExecutionEventsBytesMax);

    void append(std::string type, protocol::TextPieces data);

    struct Next {
        std::shared_ptr<const ExecutionEvent> event;  // null: there is none yet
        std::uint64_t missed = 0;                     // events before it that are no longer kept
    };
    Next after(std::uint64_t sequence) const;

    /// As another program in this process has kept it: the newest events, with their numbers.
    void go_on(std::vector<ExecutionEvent> newest);
    /// The newest that together have at most so many bytes, oldest first; the very newest always.
    std::vector<std::shared_ptr<const ExecutionEvent>> newest(std::size_t bytes_max) const;

    /// Gives up all but the newest event.
    void forget();

    std::uint64_t last_sequence() const { return next_sequence_ - 1; }
    std::size_t size() const { return events_.size(); }
    /// Of memory that it keeps.
    std::size_t bytes() const { return bytes_; }

 private:
    void drop_oldest();

    std::size_t events_max_;
    std::size_t bytes_max_;
    std::deque<std::shared_ptr<const ExecutionEvent>> events_;
    std::size_t bytes_ = 0;
    std::uint64_t next_sequence_ = 1;
};

}  // namespace cellkeep::session
