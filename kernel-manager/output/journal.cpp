// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/journal.hpp"

#include <iterator>
#include <utility>

namespace cellkeep::session {

OutputJournal::OutputJournal(std::size_t messages_max, std::size_t bytes_max)
    : messages_max_(messages_max), bytes_max_(bytes_max) {}

OutputEntry OutputJournal::append(protocol::Message message) {
    OutputEntry entry{next_sequence_++, std::move(message)};
    bytes_ += entry.message.frame().size();
    entries_.push_back(entry);
    while (entries_.size() > messages_max_ || bytes_ > bytes_max_) {
        bytes_ -= entries_.front().message.frame().size();
        entries_.pop_front();
        ++dropped_;
    }
    return entry;
}

void OutputJournal::go_on(std::uint64_t last_sequence, std::vector<protocol::Message> newest) {
    next_sequence_ = last_sequence + 1 - newest.size();
    dropped_ = next_sequence_ - 1;
    entries_.clear();
    bytes_ = 0;
    for (protocol::Message& message : newest) {
        (void)append(std::move(message));  // Ignored: it has been seen.
    }
}

std::vector<protocol::Message> OutputJournal::newest(std::size_t bytes_max) const {
    auto first = entries_.end();
    for (std::size_t bytes = 0; first != entries_.begin(); --first) {
        bytes += std::prev(first)->message.frame().size();
        if (bytes > bytes_max) {
            break;
        }
    }
    std::vector<protocol::Message> messages;
    for (; first != entries_.end(); ++first) {
        messages.push_back(first->message);
    }
    return messages;
}

OutputJournal::Replay OutputJournal::since(std::uint64_t sequence) const {
    Replay replay;
    // Sequences have no gaps, so the first kept one tells how many are missing.
    const std::uint64_t first_kept = next_sequence_ - entries_.size();
    if (sequence + 1 < first_kept) {
        replay.missed = first_kept - (sequence + 1);
    }
    if (sequence < last_sequence()) {
        const std::uint64_t skipped = sequence + 1 > first_kept ? sequence + 1 - first_kept : 0;
        const auto from = entries_.begin() + static_cast<std::ptrdiff_t>(skipped);
        replay.entries.assign(from, entries_.end());
    }
    return replay;
}

}  // namespace cellkeep::session
