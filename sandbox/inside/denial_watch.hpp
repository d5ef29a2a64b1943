// SPDX-License-Identifier: Apache-2.0
//
// Pid 1's answers to the system calls that the filter hands to it (seccomp_unotify(2)): EPERM,
// always, and a note to the server of which call it was. Here and not in the server, so that a
// guest that is refused a million times spends its own session's CPU share on it. Looks at nothing
// of a call but its number. Rules of child_setup.hpp apply.
#pragma once

#include "sandbox/inside/denial_budget.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace cellkeep::sandbox {

/// Room for what the kernel says about a call and for the answer; a kernel whose structs are larger
/// gives no reports.
inline constexpr std::size_t kNotificationBytesMax = 256;
/// How many refused calls are answered before pid 1 looks at its other work again.
inline constexpr int kDenialsPerTurn = 16;
/// Above every system call's number that is reported.
inline constexpr std::size_t kSystemCallsMax = 512;

/// 0 if this kernel tells of refused calls in structs that fit; an errno otherwise. Call it before
/// the filter is in force, which refuses the question.
int check_notifications();

struct DenialWatch {
    int listener_fd = -1;  // -1: there are no reports
    DenialBudget budget;
    std::array<std::uint64_t, kSystemCallsMax> untold{};  // by number
    std::uint32_t untold_calls = 0;                       // how many of them are not 0
};

/// Answers the calls that wait, at most kDenialsPerTurn of them. Reports each to the server before
/// it answers, as long as the budget lasts.
void answer_denials(DenialWatch& watch, int events_fd);

/// Reports the calls that could not be reported before.
void tell_denials(DenialWatch& watch, int events_fd);

/// Returns whether there is something to report and the budget for it: wait until events_fd takes
/// it.
bool can_tell(const DenialWatch& watch);

/// For poll(2): the milliseconds until there is budget for what is not reported yet, or -1.
int denial_timeout(const DenialWatch& watch);

}  // namespace cellkeep::sandbox
