// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/kernel_state.hpp"

#include <catch2/catch.hpp>

#include <optional>

using cellkeep::session::KernelEvent;
using cellkeep::session::KernelState;
using cellkeep::session::next_state;
using cellkeep::session::to_string;

namespace {

constexpr KernelState kStates[] = {
    KernelState::kStarting,
    KernelState::kIdle,
    KernelState::kBusy,
    KernelState::kRestarting,
    KernelState::kDead};
constexpr KernelEvent kEvents[] = {
    KernelEvent::kReady,
    KernelEvent::kBusy,
    KernelEvent::kIdle,
    KernelEvent::kDied,
    KernelEvent::kRestart};

}  // namespace

TEST_CASE("every cell of the kernel's state table is as documented", "[session][state]") {
    using S = KernelState;
    const std::optional<KernelState> no;
    // Rows: states; columns: ready, busy, idle, died, restart.
    const std::optional<KernelState> table[5][5] = {
        /* starting   */ {S::kIdle, no, no, S::kDead, no},
        /* idle       */ {no, S::kBusy, no, S::kDead, no},
        /* busy       */ {no, no, S::kIdle, S::kDead, no},
        /* restarting */ {S::kIdle, no, no, S::kDead, no},
        /* dead       */ {no, no, no, no, S::kRestarting},
    };
    for (int state = 0; state < 5; ++state) {
        for (int event = 0; event < 5; ++event) {
            CAPTURE(to_string(kStates[state]), event);
            CHECK(next_state(kStates[state], kEvents[event]) == table[state][event]);
        }
    }
}

TEST_CASE("the names of the states are Jupyter's", "[session][state]") {
    CHECK(to_string(KernelState::kStarting) == "starting");
    CHECK(to_string(KernelState::kIdle) == "idle");
    CHECK(to_string(KernelState::kBusy) == "busy");
    CHECK(to_string(KernelState::kRestarting) == "restarting");
    CHECK(to_string(KernelState::kDead) == "dead");
}
