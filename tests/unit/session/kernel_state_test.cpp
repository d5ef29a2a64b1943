// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/kernel_state.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <optional>
#include <set>
#include <string>

using cellkeep::session::Death;
using cellkeep::session::describe;
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

TEST_CASE("every death has its own stable name and a sentence of its own", "[session][state]") {
    using Kind = Death::Kind;
    std::set<std::string> names;
    std::set<std::string> sentences;
    for (const Kind kind :
         {Kind::kExited,
          Kind::kSignal,
          Kind::kOom,
          Kind::kWallTimeout,
          Kind::kCpuTimeout,
          Kind::kCulled,
          Kind::kRequested,
          Kind::kStartFailed,
          Kind::kSandboxDied,
          Kind::kLinkBroken}) {
        names.insert(to_string(Death{kind, 3}));
        sentences.insert(describe(Death{kind, 3}));
        CHECK(describe(Death{kind, 3}).back() == '.');
    }
    CHECK(names.size() == 10);
    CHECK(sentences.size() == 10);
    CHECK(to_string(Death{Kind::kSignal, SIGSEGV}) == "signal(11)");
    CHECK(to_string(Death{Kind::kExited, 3}) == "exited(3)");
    CHECK_THAT(describe(Death{Kind::kSignal, SIGSEGV}), Catch::Contains("segmentation fault"));
}
