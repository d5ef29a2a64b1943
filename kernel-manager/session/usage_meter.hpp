// SPDX-License-Identifier: Apache-2.0
//
// The counters of one session's sandbox, for its deadlines and budgets: they go on by an estimate
// while the CPU time cannot be read (CpuClock), so that a deadline comes then, too. Owned by the
// session. io_context thread only.
#pragma once

#include "kernel-manager/limits/cpu_clock.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "kernel-manager/limits/session_account.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace cellkeep::session {

/// How old what a run begins with may be.
inline constexpr std::chrono::milliseconds kCountersFresh{10};

class UsageMeter {
 public:
    using Time = std::chrono::steady_clock::time_point;

    /// Where the counters are read. None is empty.
    struct Source {
        /// See sandbox::Sandbox::counters().
        std::function<Result<sandbox::Usage>()> counters;
        /// See sandbox::Sandbox::cpu_counter().
        std::function<Result<sandbox::Usage>()> cpu_counter;
        /// See sandbox::Sandbox::cpu_time().
        std::function<Result<std::chrono::microseconds>(sandbox::WorkerGroup)> cpu_time;
    };
    /// A line for the log: the CPU time cannot be read any more, or can be read again. May be
    /// empty.
    using Log = std::function<void(const std::string&)>;

    /// The account and the limits stay where they are and may change.
    UsageMeter(
        Source source, const SessionAccount& account, const SessionLimits& limits, Log log = {});
    UsageMeter(const UsageMeter&) = delete;
    UsageMeter& operator=(const UsageMeter&) = delete;
    ~UsageMeter() = default;

    /// Since the sandbox was made; zeros where there is no cgroup to ask. now: of the reading.
    sandbox::Usage counters(Time now = Time::clock::now());
    /// The cpu_time of counters(), without reading the others.
    std::chrono::microseconds cpu_time(Time now = Time::clock::now());
    /// What counters() returns, or returned at most kCountersFresh before: runs that follow each
    /// other closely begin with what the one before has read.
    sandbox::Usage recent_counters(Time now = Time::clock::now());
    /// CPU time of one group since its first process; nullopt if it has no counter of its own.
    std::optional<std::chrono::microseconds> cpu_time(sandbox::WorkerGroup group);

 private:
    std::chrono::microseconds see(
        CpuClock& clock, std::optional<std::chrono::microseconds> counted);
    std::chrono::microseconds see_session(const sandbox::Usage& counted);

    const Source source_;
    const SessionAccount& account_;
    const SessionLimits& limits_;
    const Log log_;
    CpuClock clock_;
    sandbox::Usage seen_;  // by the last reading of each counter
    std::optional<Time> all_seen_at_;
    std::optional<Time> cpu_seen_at_;
    std::map<sandbox::WorkerGroup, CpuClock> group_clocks_;  // at most kSessionLanguagesMax
};

}  // namespace cellkeep::session
