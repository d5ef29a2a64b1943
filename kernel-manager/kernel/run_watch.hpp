// SPDX-License-Identifier: Apache-2.0
//
// The limits over the one run of a kernel: reads its times when a limit could have been reached and
// not before, meters what it says, and finds the limit that it ended with. Says when the run has to
// be cut short and when its kernel has to be killed; the run's owner does both. Owns the timers.
// io_context thread only.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/kernel/limit_monitor.hpp"
#include "kernel-manager/kernel/running_request.hpp"
#include "kernel-manager/limits/limit_reason.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "kernel-manager/limits/session_account.hpp"
#include "protocol/message.hpp"
#include "protocol/support/alarm.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace cellkeep::session {

class RunWatch {
 public:
    using Time = std::chrono::steady_clock::time_point;
    using Cpu = std::chrono::microseconds;

    /// The sandbox's counters. None is empty.
    struct Counters {
        /// Of the whole session, since its sandbox was made.
        std::function<sandbox::Usage()> session;
        /// The same for a run that begins; may be a moment old (UsageMeter::recent_counters).
        std::function<sandbox::Usage()> at_begin;
        /// The CPU time of the whole session.
        std::function<Cpu()> session_cpu;
        /// CPU time of the kernel's own processes; nullopt if it cannot be told apart.
        std::function<std::optional<Cpu>()> own_cpu;
        /// For how long clients have had the session paused until now, altogether.
        std::function<std::chrono::nanoseconds(Time now)> paused_for = [](Time /*now*/) {
            return std::chrono::nanoseconds(0);
        };
    };
    /// Who acts. None is empty; each may end the run.
    struct Owner {
        /// The run has passed this limit.
        std::function<void(Cut)> cut;
        /// The kernel has to be killed.
        std::function<void(const Death&)> kill;
    };

    /// The limits and the account stay where they are and may change.
    RunWatch(
        boost::asio::io_context& io,
        const SessionLimits& limits,
        SessionAccount& account,
        Counters counters,
        Owner owner,
        KeepAlive keep_alive);
    RunWatch(const RunWatch&) = delete;
    RunWatch& operator=(const RunWatch&) = delete;
    ~RunWatch() = default;

    /// From now on it is counted what the kernel says.
    void listen();
    /// The account has been replaced: what was counted before is dropped.
    void start_over();
    /// Other kernels come: from now on a run is charged its own CPU time, where the kernels can be
    /// told apart.
    void count_own_cpu();
    bool counts_own_cpu() const { return counts_own_cpu_; }

    // --- a run
    struct Start {
        Time at;
        Cpu cpu{0};
        std::uint64_t oom_kills = 0;  // of the sandbox, so far
    };
    /// A run begins now.
    Start begin();
    /// Watches its times. The run must stay where it is until forget(). May end it at once.
    void watch(RunningRequest& run, const Start& start);
    /// The kernel has exited, or the run is over: its times do not matter any more.
    void stop_timers();
    /// The run goes. Also stops the timers.
    void forget();

    /// Output of the kernel, in or between runs. Cuts the run, or kills the kernel if nothing runs
    /// that could be interrupted, when it has said more than it may.
    void count_output(std::uint64_t bytes);
    void on_denied(const sandbox::Denial& denial) { monitor_.on_denied(denial); }
    void on_reply(const protocol::Message& reply) { monitor_.on_reply(reply); }
    /// Its reply was an error.
    bool has_failed() const { return monitor_.has_failed(); }

    // --- its way to another program in this process
    struct Passed {
        LimitMonitor::Passed monitor;
        std::chrono::nanoseconds paused{0};  // by clients, while it ran
        bool counts_own_cpu = false;         // the run's clock
    };
    /// The run goes, and is not over. Also stops the timers.
    Passed pass_on();
    /// In place of begin() and watch(). May end the run at once.
    void go_on(RunningRequest& run, Passed passed);

    // --- its cut
    /// The run is being cut for a limit: returns what to do now.
    RunningRequest::CutStep cut_short(Cut limit);
    /// For a person at a notebook: how the run was cut.
    std::string describe_cut() const { return monitor_.describe_cut(limits_); }
    /// After cut_short(): kills the kernel when the grace is over.
    void begin_grace();

    // --- its end
    /// The run is over, or its kernel has died. Returns the limit that it ended with, if it was
    /// one.
    std::optional<LimitHit> settle(const std::optional<Death>& death);

 private:
    /// Its own, or the session's, which has been read.
    Cpu cpu_of(Cpu session) const;
    void check_wall(Time now);
    void check_cpu(Cpu now);
    void check_grace();

    const SessionLimits& limits_;
    SessionAccount& account_;
    const Counters counters_;
    const Owner owner_;
    LimitMonitor monitor_;
    bool counts_own_cpu_ = false;
    RunningRequest* run_ = nullptr;
    std::chrono::nanoseconds paused_before_{0};  // before the run began
    Alarm wall_alarm_;                           // the grace's, too
    Alarm cpu_alarm_;
};

}  // namespace cellkeep::session
