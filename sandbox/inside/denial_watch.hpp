// SPDX-License-Identifier: Apache-2.0
//
// Pid 1's answers to the system calls that the filter hands to it (seccomp_unotify(2)): EPERM, and
// a note to the server of which call it was. Only a process that the server has named goes on with
// a few of them (let_pass()): it leaves for a branch, and may do nothing that the system's own
// checks would not allow it. Here and not in the server, so that a
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

/// A process that leaves for a branch: these of its calls go through, so often.
inline constexpr std::size_t kPassesMax = 32;
struct Pass {
    int pid = 0;  // 0: none
    std::uint32_t left = 0;
};

struct DenialWatch {
    int listener_fd = -1;  // -1: there are no reports
    DenialBudget budget;
    std::array<std::uint64_t, kSystemCallsMax> untold{};  // by number
    std::uint32_t untold_calls = 0;                       // how many of them are not 0
    std::array<Pass, kPassesMax> passes{};
};

/// The calls of one process that take it into another sandbox and its capabilities there away go
/// through so often from now on; 0: not any more. Of too many processes the first is forgotten.
void let_pass(DenialWatch& watch, int pid, std::uint32_t calls);

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
