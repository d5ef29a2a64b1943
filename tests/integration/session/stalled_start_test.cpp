// SPDX-License-Identifier: Apache-2.0
//
// Starts of interpreters in a sandbox whose pid 1 does not come to answer: the guest's load and
// quota decide that, so only its own session may wait.
#include "tests/integration/session/languages_fixture.hpp"
#include "tests/support/execution_texts.hpp"
#include "tests/support/process_tree.hpp"

#include <catch2/catch.hpp>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

using cellkeep::Status;
using cellkeep::session::ExecutionStatus;
using cellkeep::session::KernelState;
using cellkeep::session::Session;
using cellkeep::test::begin;
using cellkeep::test::children_of;
using cellkeep::test::config_with;
using cellkeep::test::finish;
using cellkeep::test::result_of;
using cellkeep::test::ServiceFixture;
using cellkeep::test::state_of;
using cellkeep::test::StoppedProcess;

namespace {

/// A session, and pid 1 of its sandbox.
struct Opened {
    std::shared_ptr<Session> session;
    pid_t pid1 = 0;
};

Opened open_and_find(ServiceFixture& fixture) {
    const auto before = children_of(::getpid());
    auto session = fixture.open();
    for (const pid_t child : children_of(::getpid())) {
        if (std::find(before.begin(), before.end(), child) == before.end()) {
            return {std::move(session), child};
        }
    }
    FAIL("the session has no sandbox of its own");
    return {};
}

}  // namespace

TEST_CASE("only its own session waits for a start that pid 1 does not answer", "[session]") {
    ServiceFixture fixture(config_with({"second", "third"}));
    const auto neighbour = fixture.open();
    const Opened stalled = open_and_find(fixture);
    StoppedProcess pid1(stalled.pid1);
    const auto second = begin(*stalled.session, "second", "6 * 7");
    const auto third = begin(*stalled.session, "third", "7 * 7");
    CHECK(result_of(fixture.execute(*neighbour, "40 + 2"))["text/plain"] == "42");
    // The interpreter that runs already does not need its pid 1.
    CHECK(result_of(fixture.execute(*stalled.session, "1 + 1"))["text/plain"] == "2");
    CHECK(second->result() == nullptr);
    CHECK(third->result() == nullptr);
    CHECK(state_of(*stalled.session, "second") == KernelState::kStarting);
    pid1.resume();
    CHECK(result_of(finish(fixture, *second))["text/plain"] == "42");
    CHECK(result_of(finish(fixture, *third))["text/plain"] == "49");
    CHECK(stalled.session->info().restarts == 0);
}

TEST_CASE("a restart that pid 1 does not answer holds up no other session", "[session]") {
    ServiceFixture fixture(config_with({"second"}));
    const auto neighbour = fixture.open();
    const Opened stalled = open_and_find(fixture);
    REQUIRE(
        finish(fixture, *begin(*stalled.session, "second", "1")).status == ExecutionStatus::kOk);
    std::optional<StoppedProcess> pid1;
    pid1.emplace(stalled.pid1);
    std::optional<Status> restarted;
    fixture.spawn(stalled.session->restart_language("second"), restarted);
    CHECK(result_of(fixture.execute(*neighbour, "40 + 2"))["text/plain"] == "42");
    CHECK_FALSE(restarted.has_value());
    pid1.reset();
    fixture.run_until([&restarted] { return restarted.has_value(); });
    CHECK(restarted->has_value());
    CHECK(finish(fixture, *begin(*stalled.session, "second", "1")).status == ExecutionStatus::kOk);
}

TEST_CASE("a session can end while pid 1 does not answer a start", "[session]") {
    ServiceFixture fixture(config_with({"second", "third"}));
    const auto neighbour = fixture.open();
    const auto before = children_of(::getpid()).size();
    const Opened stalled = open_and_find(fixture);
    const StoppedProcess pid1(stalled.pid1);
    const auto second = begin(*stalled.session, "second", "6 * 7");
    const auto third = begin(*stalled.session, "third", "6 * 7");
    CHECK(result_of(fixture.execute(*neighbour, "40 + 2"))["text/plain"] == "42");
    REQUIRE(fixture.service.remove(stalled.session->id()).has_value());
    CHECK(finish(fixture, *second).status == ExecutionStatus::kDead);
    CHECK(finish(fixture, *third).status == ExecutionStatus::kDead);
    fixture.run_until([&] { return children_of(::getpid()).size() == before; });
    CHECK(result_of(fixture.execute(*neighbour, "40 + 2"))["text/plain"] == "42");
}

TEST_CASE("a sandbox that dies during a start ends what waits for it", "[session]") {
    ServiceFixture fixture(config_with({"second"}));
    const auto neighbour = fixture.open();
    const Opened stalled = open_and_find(fixture);
    const StoppedProcess pid1(stalled.pid1);
    const auto second = begin(*stalled.session, "second", "6 * 7");
    CHECK(result_of(fixture.execute(*neighbour, "40 + 2"))["text/plain"] == "42");
    REQUIRE(second->result() == nullptr);
    REQUIRE(::kill(stalled.pid1, SIGKILL) == 0);
    CHECK(finish(fixture, *second).status == ExecutionStatus::kDead);
    fixture.run_until([&] { return stalled.session->state() == KernelState::kDead; });
    CHECK(result_of(fixture.execute(*neighbour, "40 + 2"))["text/plain"] == "42");
}
