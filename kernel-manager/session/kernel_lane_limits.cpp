// SPDX-License-Identifier: Apache-2.0
//
// What KernelLane does for the limits of its runs: feeds the guard, cuts a flood, says and logs
// which limit a run ended with.
#include "kernel-manager/session/kernel_lane.hpp"

#include <utility>

namespace cellkeep::session {

using std::chrono::steady_clock;

std::chrono::microseconds KernelLane::cpu_of(const sandbox::Usage& session) const {
    if (counts_own_cpu_) {
        if (const auto own = shared_.sandbox.cpu_time(group_); own.has_value()) {
            return own.value();
        }
    }
    return session.cpu_time;
}

void KernelLane::count_own_cpu() {
    if (counts_own_cpu_ || shared_.sandbox.cpu_time(group_).has_error()) {
        return;
    }
    const sandbox::Usage usage = shared_.counters();
    const std::chrono::microseconds before = cpu_of(usage);
    counts_own_cpu_ = true;
    if (current_.has_value()) {
        // What it has used until now, by the other clock.
        current_->cpu_at_start += cpu_of(usage) - before;
    }
}

void KernelLane::count_output(std::uint64_t bytes) {
    if (!guard_.passes_output(bytes, steady_clock::now())) {
        return;
    }
    if (!current_.has_value()) {
        kill_kernel({Death::Kind::kOutputLimit, 0});  // nothing runs that could be interrupted
    } else if (!is_limit(current_->cut)) {
        cut_short(Cut::kOutputLimit);
    }
}

void KernelLane::settle_limits(const std::optional<Death>& death) {
    const sandbox::Usage usage = shared_.counters();
    if (current_.has_value()) {
        current_->cpu_at_end = cpu_of(usage);
    }
    auto hit = guard_.end(usage, death, session_limits(), steady_clock::now());
    if (!hit.has_value()) {
        return;
    }
    const PendingRequest& request = current_->request;
    // Who was cut has been told, and of a death the error message tells.
    if (request.origin && !is_limit(current_->cut) && !death.has_value()) {
        publish(messages_.stream(
            "stderr", hit->message + " " + hit->hint + "\n", request.message.header_json()));
    }
    if (shared_.setup.log_limit) {
        shared_.setup.log_limit(request.execution ? request.execution->execution->id() : "", *hit);
    }
    current_->hit = std::move(hit);
}

}  // namespace cellkeep::session
