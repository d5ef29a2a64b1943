// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/run_watch.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

using std::chrono::steady_clock;

RunWatch::RunWatch(
    boost::asio::io_context& io,
    const SessionLimits& limits,
    SessionAccount& account,
    Counters counters,
    Owner owner,
    KeepAlive keep_alive)
    : limits_(limits),
      account_(account),
      counters_(std::move(counters)),
      owner_(std::move(owner)),
      monitor_(account),
      wall_alarm_(io, keep_alive),
      cpu_alarm_(io, std::move(keep_alive)) {
    listen();
}

void RunWatch::listen() {
    monitor_.listen(limits_, steady_clock::now());
}

void RunWatch::start_over() {
    monitor_ = LimitMonitor(account_);
    listen();
}

RunWatch::Cpu RunWatch::cpu_of(Cpu session) const {
    if (counts_own_cpu_) {
        if (const auto own = counters_.own_cpu()) {
            return *own;
        }
    }
    return session;
}

void RunWatch::count_own_cpu() {
    if (counts_own_cpu_ || !counters_.own_cpu().has_value()) {
        return;
    }
    const Cpu session = counters_.session_cpu();
    const Cpu before = cpu_of(session);
    counts_own_cpu_ = true;
    if (run_ != nullptr) {
        // What it has used until now, by the other clock.
        run_->change_cpu_clock(cpu_of(session) - before);
    }
}

RunWatch::Start RunWatch::begin() {
    const sandbox::Usage usage = counters_.at_begin();
    const Time now = steady_clock::now();
    monitor_.begin(usage, limits_, now);
    paused_before_ = counters_.paused_for(now);
    return {.at = now, .cpu = cpu_of(usage.cpu_time), .oom_kills = usage.oom_kills};
}

void RunWatch::watch(RunningRequest& run, const Start& start) {
    run_ = &run;
    const std::uint64_t number = run.number();
    check_wall(start.at);
    // If no time was left for it, it has ended, and another may run in its place.
    if (run_ != nullptr && run_->number() == number) {
        check_cpu(start.cpu);
    }
}

RunWatch::Passed RunWatch::pass_on() {
    stop_timers();
    run_ = nullptr;
    return {
        monitor_.pass_on(),
        counters_.paused_for(steady_clock::now()) - paused_before_,
        counts_own_cpu_};
}

void RunWatch::go_on(RunningRequest& run, Passed passed) {
    const Time now = steady_clock::now();
    // The run's times are of this clock already: count_own_cpu() would move them once more.
    counts_own_cpu_ = counts_own_cpu_ || passed.counts_own_cpu;
    monitor_.go_on(std::move(passed.monitor), limits_, now);
    paused_before_ = counters_.paused_for(now) - passed.paused;
    const Cpu session = counters_.session_cpu();
    account_.see(session);
    watch(run, {.at = now, .cpu = cpu_of(session)});
}

void RunWatch::stop_timers() {
    wall_alarm_.cancel();
    cpu_alarm_.cancel();
}

void RunWatch::forget() {
    // The next run sets them again.
    wall_alarm_.rest();
    cpu_alarm_.rest();
    run_ = nullptr;
}

void RunWatch::check_wall(Time now) {
    if (is_limit(run_->cut())) {
        return;  // it has passed another limit
    }
    const auto& execution = run_->execution();
    // The session's limit may have been lowered while it waited.
    const auto most = limits_.wall;
    const auto wall = execution && execution->timeout ? std::min(*execution->timeout, most) : most;
    // The time of a person who is asked about a call is not the code's, nor is that of a pause.
    const auto held =
        counters_.paused_for(now) - paused_before_ +
        (execution ? execution->execution->held_for(now) : std::chrono::nanoseconds(0));
    const std::chrono::nanoseconds limit = monitor_.wall_time(limits_, wall, now).time;
    const RunningRequest::Look look = run_->look_at_wall(now, limit + held, account_.runs());
    if (look.passed) {
        owner_.cut(Cut::kWallTimeout);
        return;
    }
    wall_alarm_.set_after(look.again_in, [this] { check_wall(steady_clock::now()); });
}

void RunWatch::check_cpu(Cpu now) {
    if (is_limit(run_->cut())) {
        return;
    }
    const Cpu limit = monitor_.cpu_time(limits_, run_->cpu_used(now)).time;
    const RunningRequest::Look look = run_->look_at_cpu(now, limit, limits_.cpu_cores);
    if (look.passed) {
        owner_.cut(Cut::kCpuTimeout);
        return;
    }
    cpu_alarm_.set_after(look.again_in, [this] {
        const Cpu session = counters_.session_cpu();
        account_.see(session);
        check_cpu(cpu_of(session));
    });
}

void RunWatch::count_output(std::uint64_t bytes) {
    if (!monitor_.passes_output(bytes, steady_clock::now())) {
        return;
    }
    if (run_ == nullptr) {
        owner_.kill({Death::Kind::kOutputLimit, 0});
    } else if (!is_limit(run_->cut())) {
        owner_.cut(Cut::kOutputLimit);
    }
}

RunningRequest::CutStep RunWatch::cut_short(Cut limit) {
    monitor_.on_cut(limit);
    return run_->cut_short(limit, steady_clock::now(), cpu_of(counters_.session_cpu()));
}

void RunWatch::begin_grace() {
    cpu_alarm_.cancel();
    check_grace();
}

void RunWatch::check_grace() {
    const RunningRequest::Look look = run_->look_at_grace(
        steady_clock::now(), cpu_of(counters_.session_cpu()), limits_.cpu_cores);
    if (look.passed) {
        owner_.kill({death_after(run_->cut()), 0});
        return;
    }
    wall_alarm_.set_after(look.again_in, [this] { check_grace(); });
}

std::optional<LimitHit> RunWatch::settle(const std::optional<Death>& death) {
    sandbox::Usage usage;
    if (monitor_.asks_for_counts(death)) {
        usage = counters_.session();
    } else {
        usage.cpu_time = counters_.session_cpu();
    }
    if (run_ != nullptr) {
        run_->settle(cpu_of(usage.cpu_time));
    }
    return monitor_.end(usage, death, limits_, steady_clock::now());
}

}  // namespace cellkeep::session
