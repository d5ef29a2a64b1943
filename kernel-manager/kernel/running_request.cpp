// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/running_request.hpp"

#include "protocol/limits.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds kWallLookMin{1};
constexpr std::chrono::milliseconds kCpuLookMin{10};

/// How long all cores together need for this much CPU time.
nanoseconds soonest(microseconds cpu, double cores) {
    const double time = static_cast<double>(cpu.count()) / std::max(cores, 0.01);
    return std::max<nanoseconds>(microseconds(static_cast<std::int64_t>(time)), kCpuLookMin);
}

}  // namespace

RunningRequest::RunningRequest(
    PendingRequest request, std::uint64_t number, Time started_at, Cpu cpu)
    : request_(std::move(request)),
      number_(number),
      started_at_(started_at),
      cpu_at_start_(cpu),
      wall_deadline_(Time::max()) {}

bool RunningRequest::can_pass() const {
    return request_.execution && request_.execution->execution->can_pass() &&
           request_.execution->recorder.can_pass() && !writing_ && begun_ && !replied_ &&
           !question_ && cut_ == Cut::kNone;
}

RunningRequest RunningRequest::go_on(
    PendingRequest request, std::uint64_t number, const Passed& passed) {
    RunningRequest run(std::move(request), number, passed.started_at, passed.cpu_at_start);
    run.sent_ = true;
    run.begun_ = true;
    return run;
}

bool RunningRequest::is_parent_of(const protocol::Message& message) const {
    return message.parent().msg_id == request_.message.header().msg_id;
}

bool RunningRequest::on_busy() {
    return !std::exchange(begun_, true) && std::exchange(interrupt_at_busy_, false);
}

bool RunningRequest::on_reply() {
    return !std::exchange(replied_, true);
}

bool RunningRequest::on_input_request(const protocol::Message& question) {
    if (question_.has_value()) {
        return false;
    }
    question_ = question;
    return true;
}

bool RunningRequest::take_input_reply(const protocol::Message& reply) {
    if (!question_.has_value()) {
        return false;
    }
    const std::string& asked = question_->header().msg_id;
    const bool was_asked = reply.header().session == request_.message.header().session ||
                           (!asked.empty() && reply.parent().msg_id == asked);
    if (was_asked) {
        question_.reset();
    }
    return was_asked;
}

RunningRequest::Look RunningRequest::look_at_wall(Time now, nanoseconds limit, std::size_t runs) {
    wall_deadline_ = started_at_ + limit;
    const nanoseconds used = now - started_at_;
    if (used >= limit) {
        return {.passed = true};
    }
    // All runs together cannot use up what is left of a budget sooner than this.
    const auto share = static_cast<std::int64_t>(std::max<std::size_t>(1, runs));
    return {.again_in = std::max<nanoseconds>((limit - used) / share, kWallLookMin)};
}

RunningRequest::Look RunningRequest::look_at_cpu(Cpu now, Cpu limit, double cores) const {
    const Cpu used = cpu_used(now);
    if (used >= limit) {
        return {.passed = true};
    }
    return {.again_in = soonest(limit - used, cores)};
}

void RunningRequest::change_cpu_clock(Cpu ahead) {
    cpu_at_start_ += ahead;
    cpu_at_interrupt_ += ahead;
}

RunningRequest::CutStep RunningRequest::interrupt() {
    if (cut_ == Cut::kNone) {
        cut_ = Cut::kInterrupt;
    }
    return next_step();
}

RunningRequest::CutStep RunningRequest::cut_short(Cut limit, Time now, Cpu cpu) {
    cut_ = limit;
    interrupted_at_ = now;
    cpu_at_interrupt_ = cpu;
    // A timer may be late, and the answer is due at a fixed time after the deadline.
    const Time deadline = limit == Cut::kWallTimeout ? std::min(wall_deadline_, now) : now;
    kill_at_most_ = deadline + limits::kInterruptGraceMax;
    return next_step();
}

RunningRequest::CutStep RunningRequest::next_step() {
    if (writing_) {
        return CutStep::kAbandon;
    }
    if (!begun_) {
        interrupt_at_busy_ = true;
        return CutStep::kWait;
    }
    return CutStep::kInterrupt;
}

RunningRequest::Look RunningRequest::look_at_grace(Time now, Cpu cpu, double cores) const {
    const nanoseconds left = kill_at_most_ - now;
    if (left.count() <= 0) {
        return {.passed = true};
    }
    const nanoseconds time_left = interrupted_at_ + limits::kInterruptGrace - now;
    const Cpu cpu_left = limits::kInterruptCpuGrace - (cpu - cpu_at_interrupt_);
    if (time_left.count() > 0) {
        return {.again_in = std::min(time_left, left)};
    }
    if (cpu_left.count() <= 0) {
        return {.passed = true};
    }
    return {.again_in = std::min(soonest(cpu_left, cores), left)};
}

ExecutionMetrics RunningRequest::measure(Time now, std::optional<std::uint64_t> memory_peak) const {
    using std::chrono::duration_cast;
    ExecutionMetrics metrics;
    metrics.wall = duration_cast<microseconds>(now - started_at_);
    metrics.queued = duration_cast<microseconds>(started_at_ - request_.queued_at);
    // settle() knows the CPU time; without a cgroup both are 0.
    metrics.cpu = std::max(microseconds{0}, cpu_at_end_ - cpu_at_start_);
    if (memory_peak.has_value()) {
        metrics.memory_peak_bytes = *memory_peak;
        metrics.memory_peak_is_own = peak_is_own_;
    }
    return metrics;
}

}  // namespace cellkeep::session
