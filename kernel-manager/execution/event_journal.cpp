// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/event_journal.hpp"

#include <iterator>
#include <utility>

namespace cellkeep::session {

namespace {

std::size_t cost(const ExecutionEvent& event) {
    return sizeof event + event.type.size() + event.data.held_bytes();
}

}  // namespace

EventJournal::EventJournal(std::size_t events_max, std::size_t bytes_max)
    : events_max_(events_max), bytes_max_(bytes_max) {}

void EventJournal::append(std::string type, protocol::TextPieces data) {
    events_.push_back(std::make_shared<const ExecutionEvent>(
        ExecutionEvent{next_sequence_++, std::move(type), std::move(data)}));
    bytes_ += cost(*events_.back());
    while (events_.size() > 1 && (events_.size() > events_max_ || bytes_ > bytes_max_)) {
        drop_oldest();
    }
}

void EventJournal::go_on(std::vector<ExecutionEvent> newest) {
    for (ExecutionEvent& event : newest) {
        next_sequence_ = events_.empty() ? event.sequence : next_sequence_;
        append(std::move(event.type), std::move(event.data));
    }
}

std::vector<std::shared_ptr<const ExecutionEvent>> EventJournal::newest(
    std::size_t bytes_max) const {
    auto first = events_.end();
    for (std::size_t bytes = 0; first != events_.begin(); --first) {
        bytes += (*std::prev(first))->data.size();
        if (bytes > bytes_max && first != events_.end()) {
            break;
        }
    }
    return {first, events_.end()};
}

void EventJournal::drop_oldest() {
    bytes_ -= cost(*events_.front());
    events_.pop_front();
}

EventJournal::Next EventJournal::after(std::uint64_t sequence) const {
    if (sequence >= last_sequence()) {
        return {};
    }
    const std::uint64_t first_kept = next_sequence_ - events_.size();
    if (sequence + 1 < first_kept) {
        return {events_.front(), first_kept - (sequence + 1)};
    }
    return {events_[static_cast<std::size_t>(sequence + 1 - first_kept)], 0};
}

void EventJournal::forget() {
    while (events_.size() > 1) {
        drop_oldest();
    }
}

}  // namespace cellkeep::session
