// SPDX-License-Identifier: Apache-2.0
//
// Why an interpreter ended: a value of answers, logs and descriptions of sessions. Pure functions.
#pragma once

#include <string>

namespace cellkeep::session {

struct Death {
    /// An upgrade passes its number (passed_kernel.cpp): a new one comes last.
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

}  // namespace cellkeep::session
