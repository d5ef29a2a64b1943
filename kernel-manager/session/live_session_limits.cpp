// SPDX-License-Identifier: Apache-2.0
//
// What LiveSession does for the limits of its runs: feeds the guard, cuts a flood, says and logs
// which limit a run ended with.
#include "kernel-manager/session/live_session.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace cellkeep::session {

using std::chrono::steady_clock;

sandbox::Usage LiveSession::counters_or_nothing() const {
    const auto usage = sandbox_.counters();
    return usage.has_value() ? usage.value() : sandbox::Usage{};  // no cgroup to ask
}

void LiveSession::count_output(std::uint64_t bytes) {
    if (!guard_.passes_output(bytes, steady_clock::now())) {
        return;
    }
    if (!current_.has_value()) {
        kill_kernel({Death::Kind::kOutputLimit, 0});  // nothing runs that could be interrupted
    } else if (!is_limit(current_->cut)) {
        cut_short(Cut::kOutputLimit);
    }
}

void LiveSession::settle_limits(const std::optional<Death>& death) {
    const sandbox::Usage usage = counters_or_nothing();
    if (current_.has_value()) {
        current_->cpu_at_end = usage.cpu_time;
    }
    auto hit = guard_.end(usage, death, setup_.options.limits, steady_clock::now());
    if (!hit.has_value()) {
        return;
    }
    const PendingRequest& request = current_->request;
    // Who was cut has been told, and of a death the error message tells.
    if (request.origin && !is_limit(current_->cut) && !death.has_value()) {
        publish(messages_.stream(
            "stderr", hit->message + " " + hit->hint + "\n", request.message.header_json()));
    }
    if (setup_.log_limit) {
        setup_.log_limit(request.execution ? request.execution->execution->id() : "", *hit);
    }
    current_->hit = std::move(hit);
}

Result<std::optional<sandbox::SandboxEvent>> LiveSession::next_sandbox_event() {
    if (postponed_events_.empty()) {
        return sandbox_.next_event();
    }
    std::optional<sandbox::SandboxEvent> event = postponed_events_.front();
    postponed_events_.pop_front();
    return event;
}

void LiveSession::take_denials() {
    // An exit is not acted on here: we are inside what the interpreter says.
    const bool had = !postponed_events_.empty();
    while (true) {
        auto event = sandbox_.next_event();
        if (event.has_error()) {
            postponed_events_.push_back({sandbox::SandboxEvent::Kind::kSandboxDied, {}, {}});
            break;
        }
        if (!event.value().has_value()) {
            break;
        }
        if (event.value()->kind == sandbox::SandboxEvent::Kind::kDenied) {
            guard_.on_denied(event.value()->denial);
        } else {
            postponed_events_.push_back(*event.value());
        }
    }
    if (!had && !postponed_events_.empty()) {
        boost::asio::post(io_, [self = shared_from_this()] { self->take_sandbox_events(); });
    }
}

}  // namespace cellkeep::session
