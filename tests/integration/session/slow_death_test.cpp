// SPDX-License-Identifier: Apache-2.0
//
// Processes that take long to die: how long is up to the guest (one with many mappings takes
// seconds), so no other session may wait for them.
#include "tests/integration/session/session_fixture.hpp"
#include "tests/support/execution_texts.hpp"
#include "tests/support/held_process.hpp"
#include "tests/support/process_tree.hpp"

#include <boost/asio/awaitable.hpp>
#include <catch2/catch.hpp>

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using cellkeep::Result;
using cellkeep::session::Death;
using cellkeep::session::ExecutionRequest;
using cellkeep::session::ExecutionResult;
using cellkeep::session::ExecutionStatus;
using cellkeep::session::Session;
using cellkeep::test::children_of;
using cellkeep::test::find_descendant;
using cellkeep::test::HeldProcess;
using cellkeep::test::result_of;
using cellkeep::test::ServiceFixture;
using cellkeep::test::state_of;

namespace {

/// A process of the session that does not end before the test releases it.
HeldProcess hold_one(ServiceFixture& fixture, Session& session) {
    // Popen returns when exec(2) has closed its pipe, which is before the process has its new name.
    const auto started = fixture.execute(
        session,
        "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])\n"
        "while open(f'/proc/{child.pid}/comm').read() != 'sleep\\n':\n    pass");
    REQUIRE(started.status == ExecutionStatus::kOk);
    auto held = HeldProcess::hold(find_descendant("sleep"));
    REQUIRE(held.has_value());
    return std::move(held).value();
}

ExecutionRequest code(std::string text) {
    ExecutionRequest request;
    request.code = std::move(text);
    return request;
}

/// Waits as a client does that has deleted the session.
boost::asio::awaitable<bool> see_it_gone(ServiceFixture& fixture, std::string session_id) {
    co_await fixture.service.wait_until_gone(std::move(session_id));
    co_return true;
}

}  // namespace

TEST_CASE("no client waits for what a dead interpreter has left running", "[session]") {
    ServiceFixture fixture;
    const auto neighbour = fixture.open();
    const auto session = fixture.open();
    HeldProcess held = hold_one(fixture, *session);
    std::optional<Result<ExecutionResult>> died;
    fixture.spawn(session->execute(code("import os; os._exit(3)")), died);
    while (state_of(held.pid()) != 'Z') {
        CHECK(result_of(fixture.execute(*neighbour, "40 + 2"))["text/plain"] == "42");
    }
    // The server has seen the exit and begun to kill; it has nothing to wait for with its thread.
    CHECK(result_of(fixture.execute(*neighbour, "40 + 2"))["text/plain"] == "42");
    // The client that asked for the run does not wait either.
    fixture.run_until([&died] { return died.has_value(); });
    REQUIRE(died->has_value());
    CHECK(died->value().status == ExecutionStatus::kDead);
    CHECK(to_string(died->value().death.value()) == "exited(3)");
    // A later request waits for the next interpreter.
    std::optional<Result<ExecutionResult>> next;
    fixture.spawn(session->execute(code("'again'")), next);
    CHECK(result_of(fixture.execute(*neighbour, "40 + 2"))["text/plain"] == "42");
    CHECK_FALSE(next.has_value());
    CHECK(state_of(held.pid()) == 'Z');
    held.release();
    fixture.run_until([&next] { return next.has_value(); });
    REQUIRE(next->has_value());
    CHECK(result_of(next->value())["text/plain"] == "'again'");
    CHECK(session->info().restarts == 1);
}

TEST_CASE("a deadline is kept whatever dies slowly", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    HeldProcess held = hold_one(fixture, *session);
    ExecutionRequest request = code(
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "while True: pass");
    request.timeout = std::chrono::milliseconds(100);
    std::optional<Result<ExecutionResult>> cut;
    fixture.spawn(session->execute(std::move(request)), cut);
    fixture.run_until([&cut] { return cut.has_value(); });
    REQUIRE(cut->has_value());
    CHECK(cut->value().status == ExecutionStatus::kTimeout);
    CHECK(state_of(held.pid()) == 'Z');
    held.release();
    CHECK(fixture.execute(*session, "'again'").status == ExecutionStatus::kOk);
}

TEST_CASE("no client waits for the last process of a session that was ended", "[session]") {
    ServiceFixture fixture;
    const auto neighbour = fixture.open();
    const auto session = fixture.open();
    HeldProcess held = hold_one(fixture, *session);
    const auto sandboxes = children_of(::getpid());
    REQUIRE(fixture.service.remove(session->id()).has_value());
    CHECK(result_of(fixture.execute(*neighbour, "40 + 2"))["text/plain"] == "42");
    CHECK(find_descendant("sleep") != 0);
    held.release();
    fixture.run_until([&] { return children_of(::getpid()).size() < sandboxes.size(); });
    CHECK(result_of(fixture.execute(*neighbour, "40 + 2"))["text/plain"] == "42");
}

TEST_CASE("after a wait for the end of sessions nothing of them is left", "[session]") {
    ServiceFixture fixture;
    const auto neighbour = fixture.open();
    const auto before = children_of(::getpid());
    constexpr std::size_t kMany = 6;
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < kMany; ++i) {
        ids.push_back(fixture.open()->id());
    }
    CHECK(children_of(::getpid()).size() == before.size() + kMany);
    std::vector<std::optional<bool>> gone(kMany);
    for (std::size_t i = 0; i < kMany; ++i) {
        REQUIRE(fixture.service.remove(ids[i]).has_value());
        CHECK(fixture.service.find(ids[i]) == nullptr);
        fixture.spawn(see_it_gone(fixture, ids[i]), gone[i]);
    }
    // Other threads take them away: this one has only asked for it.
    CHECK(result_of(fixture.execute(*neighbour, "40 + 2"))["text/plain"] == "42");
    fixture.run_until([&gone] {
        return std::all_of(gone.begin(), gone.end(), [](auto& one) { return one.has_value(); });
    });
    CHECK(children_of(::getpid()).size() == before.size());
    CHECK(fixture.run(see_it_gone(fixture, ids[0])));      // long since
    CHECK(fixture.run(see_it_gone(fixture, "ses_none")));  // never was
}

TEST_CASE("a wait for the end of a session ends after a time", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    HeldProcess held = hold_one(fixture, *session);
    const std::string id = session->id();
    REQUIRE(fixture.service.remove(id).has_value());
    CHECK(fixture.run(see_it_gone(fixture, id)));
    CHECK(find_descendant("sleep") != 0);
    held.release();
    fixture.run_until([] { return find_descendant("sleep") == 0; });
}

TEST_CASE("a server that ends waits for the sessions that are being removed", "[session]") {
    std::size_t before = 0;
    {
        ServiceFixture fixture;
        before = children_of(::getpid()).size();
        const std::string id = fixture.open()->id();
        REQUIRE(fixture.service.remove(id).has_value());
        fixture.service.shutdown();
        CHECK(children_of(::getpid()).size() == before);
    }
    CHECK(children_of(::getpid()).size() <= before);
}
