// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/kernel_state.hpp"

namespace cellkeep::session {

std::string_view to_string(KernelState state) {
    switch (state) {
        case KernelState::kStarting:
            return "starting";
        case KernelState::kIdle:
            return "idle";
        case KernelState::kBusy:
            return "busy";
        case KernelState::kRestarting:
            return "restarting";
        case KernelState::kDead:
            return "dead";
    }
    return "unknown";
}

std::optional<KernelState> next_state(KernelState state, KernelEvent event) {
    using State = KernelState;
    using Event = KernelEvent;
    switch (event) {
        case Event::kReady:
            if (state == State::kStarting || state == State::kRestarting) {
                return State::kIdle;
            }
            return std::nullopt;
        case Event::kBusy:
            if (state == State::kIdle) {
                return State::kBusy;
            }
            return std::nullopt;
        case Event::kIdle:
            if (state == State::kBusy) {
                return State::kIdle;
            }
            return std::nullopt;
        case Event::kDied:
            if (state != State::kDead) {
                return State::kDead;
            }
            return std::nullopt;
        case Event::kRestart:
            // A restart begins when the old process is gone (dead); a live one dies first.
            if (state == State::kDead) {
                return State::kRestarting;
            }
            return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace cellkeep::session
