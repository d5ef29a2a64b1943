// SPDX-License-Identifier: Apache-2.0
//
// Hands the output that front ends see to the journal and to every observer. Not thread-safe.
#pragma once

#include "kernel-manager/output/journal.hpp"
#include "kernel-manager/output/output_observer.hpp"
#include "protocol/message.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cellkeep::session {

class OutputFanout {
 public:
    /// The bounds of the journal.
    OutputFanout(std::size_t messages_max, std::size_t bytes_max)
        : journal_(messages_max, bytes_max) {}
    OutputFanout(const OutputFanout&) = delete;
    OutputFanout& operator=(const OutputFanout&) = delete;
    ~OutputFanout() = default;

    /// The observer must unsubscribe before it ends. Both may be called by an observer from inside
    /// on_output(): a new one sees the next message, one that has gone is not called again.
    void subscribe(OutputObserver* observer) { observers_.push_back(observer); }
    void unsubscribe(OutputObserver* observer);

    /// Returns whether an observer is congested. The caller then reads no further messages until
    /// is_congested() returns false.
    bool show(protocol::Message message);
    bool is_congested() const;

    const OutputJournal& journal() const { return journal_; }
    /// OutputJournal::go_on().
    void go_on(std::uint64_t last_sequence, std::vector<protocol::Message> newest) {
        journal_.go_on(last_sequence, std::move(newest));
    }

 private:
    OutputJournal journal_;
    std::vector<OutputObserver*> observers_;
};

}  // namespace cellkeep::session
