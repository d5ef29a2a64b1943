// SPDX-License-Identifier: Apache-2.0
//
// What KernelLane does for the limits of its runs: watches their times, feeds the limit monitor,
// cuts a flood, says and logs which limit a run ended with.
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
        current_->change_cpu_clock(cpu_of(usage) - before);
    }
}

void KernelLane::arm_deadlines(steady_clock::time_point now, std::chrono::microseconds cpu) {
    const std::uint64_t number = current_->number();
    check_wall(now);
    if (is_current(number)) {
        check_cpu(cpu);
    }
}

void KernelLane::check_wall(steady_clock::time_point now) {
    if (is_limit(current_->cut())) {
        return;  // the timer had gone off before another limit stopped it
    }
    const auto& execution = current_->execution();
    // The session's limit may have been lowered while it waited.
    const auto most = session_limits().wall;
    const auto wall = execution && execution->timeout ? std::min(*execution->timeout, most) : most;
    const std::chrono::nanoseconds limit = monitor_.wall_time(session_limits(), wall, now).time;
    const RunningRequest::Look look = current_->look_at_wall(now, limit, shared_.account.runs());
    if (look.passed) {
        cut_short(Cut::kWallTimeout);
        return;
    }
    wall_timer_.expires_after(look.again_in);
    wall_timer_.async_wait(
        [weak = weak(), number = current_->number()](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (!error && self && self->is_current(number)) {
                self->check_wall(steady_clock::now());
            }
        });
}

void KernelLane::prove_end(ClaimedEnd::Step step) {
    if (!process_ || end_.is_near()) {
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
    if (is_limit(current_->cut())) {
        return;
    }
    const auto limit = monitor_.cpu_time(session_limits(), current_->cpu_used(now)).time;
    const RunningRequest::Look look = current_->look_at_cpu(now, limit, session_limits().cpu_cores);
    if (look.passed) {
        cut_short(Cut::kCpuTimeout);
        return;
    }
    cpu_timer_.expires_after(look.again_in);
    cpu_timer_.async_wait(
        [weak = weak(), number = current_->number()](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (!error && self && self->is_current(number)) {
                const sandbox::Usage usage = self->shared_.counters();
                self->shared_.account.see(usage);
                self->check_cpu(self->cpu_of(usage));
            }
        });
}

void KernelLane::count_output(std::uint64_t bytes) {
    if (!monitor_.passes_output(bytes, steady_clock::now())) {
        return;
    }
    if (!current_.has_value()) {
        kill_kernel({Death::Kind::kOutputLimit, 0});  // nothing runs that could be interrupted
    } else if (!is_limit(current_->cut())) {
        cut_short(Cut::kOutputLimit);
    }
}

void KernelLane::settle_limits(const std::optional<Death>& death) {
    const sandbox::Usage usage = shared_.counters();
    if (current_.has_value()) {
        current_->settle(cpu_of(usage));
    }
    auto hit = monitor_.end(usage, death, session_limits(), steady_clock::now());
    if (!hit.has_value()) {
        return;
    }
    const PendingRequest& request = current_->request();
    // Who was cut has been told, and of a death the error message tells.
    if (request.origin && !is_limit(current_->cut()) && !death.has_value()) {
        publish(messages_.stream(
            "stderr", hit->message + " " + hit->hint + "\n", request.message.header_json()));
    }
    if (shared_.setup.log_limit) {
        shared_.setup.log_limit(request.execution ? request.execution->execution->id() : "", *hit);
    }
    current_->set_hit(std::move(*hit));
}

}  // namespace cellkeep::session
