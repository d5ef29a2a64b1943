// SPDX-License-Identifier: Apache-2.0
//
// The life of one kernel as a pure state machine: no clock, no process, no side effect. The names
// of the states are Jupyter's execution states (messaging specification 5.5, "Kernel status").
#pragma once

#include <optional>
#include <string_view>

namespace cellkeep::session {

enum class KernelState { kStarting, kIdle, kBusy, kRestarting, kDead };

std::string_view to_string(KernelState state);

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
