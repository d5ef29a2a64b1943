// SPDX-License-Identifier: Apache-2.0
//
// The life of one kernel as a pure state machine: no clock, no process, no side effect. The names
// of the states are Jupyter's execution states (messaging specification 5.5, "Kernel status").
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::session {

enum class KernelState { kStarting, kIdle, kBusy, kRestarting, kDead };

std::string_view to_string(KernelState state);

/// Why a kernel is no more.
struct Death {
    enum class Kind {
        kExited,       // the process ended by itself; detail is its exit code
        kSignal,       // a signal that we did not send; detail is its number
        kOom,          // the memory limit of its session
        kWallTimeout,  // outlived an interrupt after its deadline
        kCpuTimeout,
        kOutputLimit,  // outlived an interrupt after it had said too much
        kCulled,       // idle or old
        kRequested,    // restart, shutdown or delete
        kStartFailed,  // never became ready
        kSandboxDied,  // pid 1 of the sandbox is gone
        kLinkBroken,   // closed or broke its link to the server while alive
    };
    Kind kind = Kind::kExited;
    int detail = 0;
};

/// The stable name with its number, for programs: "exited(3)", "signal(11)", "oom", "wall_timeout"
/// …
std::string to_string(const Death& death);
/// One sentence for people: "The interpreter crashed (signal 11, segmentation fault)."
std::string describe(const Death& death);

enum class KernelEvent {
    kReady,    // answered its first kernel_info_request
    kBusy,     // began a request
    kIdle,     // finished it
    kDied,     // the process is gone
    kRestart,  // a new process is being started
};

/// The next state, or nothing if the event is impossible in this state (a bug, or a late message of
/// a process that is already gone: the caller decides, the state stays).
std::optional<KernelState> next_state(KernelState state, KernelEvent event);

}  // namespace cellkeep::session
