// SPDX-License-Identifier: Apache-2.0
//
// What KernelLane does for the limits of its runs: watches their times, feeds the guard, cuts a
// flood, says and logs which limit a run ended with.
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/session/kernel_lane.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace cellkeep::session {

using protocol::Channel;
using protocol::Message;
using std::chrono::steady_clock;

std::chrono::microseconds KernelLane::cpu_of(const sandbox::Usage& session) const {
    if (counts_own_cpu_) {
        if (const auto own = shared_.cpu_time(group_)) {
            return *own;
        }
    }
    return session.cpu_time;
}

void KernelLane::count_own_cpu() {
    if (counts_own_cpu_ || !shared_.cpu_time(group_).has_value()) {
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

void KernelLane::arm_deadlines() {
    check_wall(current_->started_at);
    check_cpu(current_->cpu_at_start);
}

void KernelLane::check_wall(steady_clock::time_point now) {
    const auto& execution = current_->request.execution;
    // The session's limit may have been lowered while it waited.
    const auto most = session_limits().wall;
    const auto wall = execution && execution->timeout ? std::min(*execution->timeout, most) : most;
    const std::chrono::nanoseconds limit = guard_.wall_time(session_limits(), wall, now).time;
    current_->wall_limit = limit;
    const std::chrono::nanoseconds used = now - current_->started_at;
    if (used >= limit) {
        cut_short(Cut::kWallTimeout);
        return;
    }
    // All runs together cannot use up what is left of a budget sooner than this.
    const auto runs = static_cast<std::int64_t>(std::max<std::size_t>(1, shared_.account.runs()));
    wall_timer_.expires_after(
        std::max<std::chrono::nanoseconds>((limit - used) / runs, std::chrono::milliseconds(1)));
    wall_timer_.async_wait(
        [weak = weak(), number = current_->number](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (!error && self && self->is_current(number)) {
                self->check_wall(steady_clock::now());
            }
        });
}

void KernelLane::prove_end(ClaimedEnd::Step step) {
    if (!process_ || ended_.has_value() || kill_reason_.has_value()) {
        return;  // its end is certain
    }
    if (step == ClaimedEnd::Step::kAsk) {
        if (current_.has_value()) {
            return;  // that is the question
        }
        host_.wake();
        const Message probe =
            messages_.request(Channel::kShell, "kernel_info_request", nlohmann::json::object());
        end_probe_id_ = probe.header().msg_id;
        (void)process_->send(probe);  // Ignored: a link that takes nothing is answered by nobody.
    } else if (step == ClaimedEnd::Step::kInterrupt) {
        process_->resume_reading();
        (void)process_->send_signal(SIGINT);  // Ignored: it fails only if the process is gone.
    } else {
        kill_kernel({Death::Kind::kWallTimeout, 0});
    }
}

void KernelLane::check_cpu(std::chrono::microseconds now) {
    const std::chrono::microseconds used = now - current_->cpu_at_start;
    const std::chrono::microseconds limit = guard_.cpu_time(session_limits(), used).time;
    if (used >= limit) {
        cut_short(Cut::kCpuTimeout);
        return;
    }
    // All cores together cannot use up what is left sooner than this, so there is no need to look.
    const double cores = std::max(session_limits().cpu_cores, 0.01);
    const auto soonest = std::chrono::microseconds(
        static_cast<std::int64_t>(static_cast<double>((limit - used).count()) / cores));
    cpu_timer_.expires_after(
        std::max<std::chrono::microseconds>(soonest, std::chrono::milliseconds(10)));
    cpu_timer_.async_wait(
        [weak = weak(), number = current_->number](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (!error && self && self->is_current(number)) {
                const sandbox::Usage usage = self->shared_.counters();
                self->shared_.account.see(usage);
                self->check_cpu(self->cpu_of(usage));
            }
        });
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
