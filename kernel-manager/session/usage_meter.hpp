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

class UsageMeter {
 public:
    /// Where the counters are read. None is empty.
    struct Source {
        /// See sandbox::Sandbox::counters().
        std::function<Result<sandbox::Usage>()> counters;
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

    /// Since the sandbox was made; zeros where there is no cgroup to ask.
    sandbox::Usage counters();
    /// CPU time of one group since its first process; nullopt if it has no counter of its own.
    std::optional<std::chrono::microseconds> cpu_time(sandbox::WorkerGroup group);

 private:
    std::chrono::microseconds see(
        CpuClock& clock, std::optional<std::chrono::microseconds> counted);

    const Source source_;
    const SessionAccount& account_;
    const SessionLimits& limits_;
    const Log log_;
    CpuClock clock_;
    std::map<sandbox::WorkerGroup, CpuClock> group_clocks_;  // at most kSessionLanguagesMax
};

}  // namespace cellkeep::session
