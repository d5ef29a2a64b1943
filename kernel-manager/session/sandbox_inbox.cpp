// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/sandbox_inbox.hpp"

namespace cellkeep::session {

using sandbox::SandboxEvent;

std::optional<SandboxEvent> SandboxInbox::read() {
    auto event = source_();
    if (event.has_error()) {
        return SandboxEvent{SandboxEvent::Kind::kSandboxDied, {}, {}, 0};
    }
    return event.value();
}

std::optional<SandboxEvent> SandboxInbox::next() {
    if (waiting_.empty()) {
        return read();
    }
    std::optional<SandboxEvent> event = std::move(waiting_.front());
    waiting_.pop_front();
    return event;
}

SandboxInbox::Denials SandboxInbox::take_denials() {
    Denials taken;
    const bool had_waiting = !waiting_.empty();
    while (auto event = read()) {
        if (event->kind == SandboxEvent::Kind::kDenied) {
            taken.denials.push_back(event->denial);
            continue;
        }
        waiting_.push_back(*event);
        if (event->kind == SandboxEvent::Kind::kSandboxDied) {
            break;  // the source would say so again and again
        }
    }
    taken.must_continue = !had_waiting && !waiting_.empty();
    return taken;
}

}  // namespace cellkeep::session
