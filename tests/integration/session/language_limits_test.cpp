// SPDX-License-Identifier: Apache-2.0
//
// Sessions in which several languages run: limits, budgets, front ends, failures and rest.
#include "kernel-manager/limits/limits.hpp"
#include "tests/integration/session/languages_fixture.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::test {

using session::Death;
using session::Execution;
using session::ExecutionPhase;
using session::ExecutionStatus;
using session::KernelState;
using session::kSessionLanguagesMax;
using session::SessionOptions;

TEST_CASE(
    "a session runs at most kSessionLanguagesMax languages, and all end with it",
    "[session][lanes]") {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < kSessionLanguagesMax; ++i) {
        names.push_back("snake" + std::to_string(i));
    }
    ServiceFixture fixture(config_with(names));
    SessionOptions options;
    options.limits.memory_mb = 1024;
    options.limits.processes = 128;
    const auto session = fixture.open(std::move(options));
    std::vector<std::shared_ptr<Execution>> begun{begin(*session, "", until("never"))};
    for (std::size_t i = 1; i < kSessionLanguagesMax; ++i) {
        begun.push_back(begin(*session, names[i], until("never")));
    }
    const auto refused = session->begin(in(names[0], "1"));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    CHECK_THAT(refused.error().message(), Catch::StartsWith("language: "));
    CHECK(begin(*session, names[1], "1")->phase() == ExecutionPhase::kQueued);
    // Some run, some interpreters are just starting: each is answered.
    wait_for_waiting(fixture, *begun[0]);
    REQUIRE(fixture.service.remove(session->id()).has_value());
    for (const auto& execution : begun) {
        REQUIRE(execution->result() != nullptr);
        CHECK(execution->result()->status == ExecutionStatus::kDead);
        CHECK(execution->result()->death->kind == Death::Kind::kRequested);
    }
    CHECK(session->begin(in("", "1")).has_error());
}

TEST_CASE("front ends see one kernel", "[session][lanes]") {
    ServiceFixture fixture(config_with({"snake"}));
    const auto session = fixture.open();
    RecordingClient client;
    session->subscribe(&client);
    const auto result = fixture.execute(*session, in("snake", "print('seen by who asked'); 1 / 0"));
    CHECK(result.stdout_text == "seen by who asked\n");
    REQUIRE(fixture.run(session->restart_language("snake")).has_value());
    CHECK(
        fixture.execute(*session, in("snake", "import os; os._exit(1)")).status ==
        ExecutionStatus::kDead);
    CHECK(client.output.empty());
    CHECK(session->info().state == KernelState::kIdle);
    CHECK_FALSE(session->info().death.has_value());
    const auto cell = execute_request("print('seen by all')");
    session->submit(cell, std::shared_ptr<RecordingClient>(&client, [](auto*) {}));
    fixture.run_until([&] { return client.states_of(&cell).size() == 2; });
    CHECK(client.text_of(cell) == "seen by all\n");
    session->unsubscribe(&client);
}

TEST_CASE("budgets are the session's, whatever its languages", "[session][lanes]") {
    ServiceFixture fixture(config_with({"snake"}));
    SessionOptions options;
    options.limits.executions = 2;
    const auto session = fixture.open(std::move(options));
    CHECK(fixture.execute(*session, in("snake", "print('12345')")).status == ExecutionStatus::kOk);
    CHECK(session->info().used.executions == 1);
    const auto said = session->info().used.output_bytes;
    CHECK(said > 0);
    CHECK(fixture.execute(*session, in("python", "1")).status == ExecutionStatus::kOk);
    CHECK(session->info().executions == 2);
    for (const char* language : {"python", "snake"}) {
        const auto refused = session->begin(in(language, "1"));
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    }
    CHECK(session->refusal()->budget == "executions");
}

TEST_CASE("the answer of one language's run names the limit that it reached", "[session][lanes]") {
    ServiceFixture fixture(config_with({"snake"}));
    const auto session = fixture.open();
    const auto other = begin(*session, "python", until("go"));
    wait_for_waiting(fixture, *other);
    auto request = in("snake", "import time\nwhile True: time.sleep(0.01)");
    request.timeout = std::chrono::milliseconds(300);
    const auto late = fixture.execute(*session, std::move(request));
    CHECK(late.status == ExecutionStatus::kTimeout);
    CHECK(late.error->kind == "wall_timeout");
    CHECK(other->phase() == ExecutionPhase::kRunning);
    if (::geteuid() == 0) {
        const auto large = fixture.execute(*session, in("snake", "x = bytearray(600 << 20)"));
        CHECK(large.status == ExecutionStatus::kOom);
        CHECK(other->phase() == ExecutionPhase::kRunning);
    }
    REQUIRE(session->workspace().value().write_file("go", "").has_value());
    CHECK(finish(fixture, *other).status == ExecutionStatus::kOk);
}

TEST_CASE("a run is charged the CPU time of its own language", "[session][lanes]") {
    if (::geteuid() != 0) {
        return;  // That takes a cgroup.
    }
    ServiceFixture fixture(config_with({"snake"}));
    const auto session = fixture.open();
    const auto idle = begin(*session, "python", until("go"));
    wait_for_waiting(fixture, *idle);
    const auto busy = fixture.execute(
        *session,
        in("snake",
           "import time\nend = time.process_time() + 1\nwhile time.process_time() < end: pass\n"
           "open('go', 'w').close()"));
    CHECK(busy.metrics.cpu >= std::chrono::seconds(1));
    const auto& waited = finish(fixture, *idle);
    CHECK(waited.status == ExecutionStatus::kOk);
    CHECK(waited.metrics.cpu < std::chrono::seconds(1));
    CHECK(session->info().used.cpu >= busy.metrics.cpu);
}

TEST_CASE("a language whose kernel cannot start is dead, and only that", "[session][lanes]") {
    auto config = config_with({});
    session::KernelSpec broken = *config.catalog.find("python");
    broken.language = "broken";
    broken.forkable = false;
    broken.argv = {"/usr/bin/no-such-program"};
    config.catalog.add(std::move(broken));
    ServiceFixture fixture(std::move(config));
    const auto session = fixture.open();
    const auto failed = fixture.execute(*session, in("broken", "1"));
    CHECK(failed.status == ExecutionStatus::kDead);
    CHECK(failed.death->kind == Death::Kind::kStartFailed);
    CHECK(state_of(*session, "broken") == KernelState::kDead);
    const auto again = session->begin(in("broken", "1"));
    REQUIRE(again.has_error());
    CHECK(again.error().code() == ErrorCode::kConflict);
    CHECK_THAT(again.error().hint(), Catch::Contains("broken"));
    CHECK(fixture.run(session->restart_language("broken")).has_error());
    CHECK(fixture.execute(*session, in("", "print(1)")).stdout_text == "1\n");
    CHECK(session->info().state == KernelState::kIdle);
}

TEST_CASE(
    "a language that begins while another's remains are swept waits for that", "[session][lanes]") {
    ServiceFixture fixture(config_with({"snake"}));
    const auto session = fixture.open();
    const auto dying = begin(*session, "python", "import os; os._exit(1)");
    fixture.run_until([&] { return session->info().state != KernelState::kBusy; });
    CHECK(fixture.execute(*session, in("snake", "print(1)")).stdout_text == "1\n");
    CHECK(finish(fixture, *dying).status == ExecutionStatus::kDead);
}

TEST_CASE("a session is frozen when all its languages are at rest", "[session][lanes]") {
    if (::geteuid() != 0) {
        return;  // That takes a cgroup.
    }
    auto config = config_with({"snake"});
    config.freeze_after = std::chrono::seconds(1);
    ServiceFixture fixture(std::move(config));
    const auto session = fixture.open();
    CHECK(fixture.execute(*session, in("snake", "x = 1")).status == ExecutionStatus::kOk);
    fixture.run_until([&] { return session->info().frozen; });
    // A further language starts in what was frozen, one that is there goes on.
    CHECK(fixture.execute(*session, in("snake", "print(x)")).stdout_text == "1\n");
    CHECK_FALSE(session->info().frozen);
    const auto running = begin(*session, "snake", "import time; time.sleep(3)");
    CHECK(fixture.execute(*session, in("python", "1")).status == ExecutionStatus::kOk);
    CHECK(finish(fixture, *running).status == ExecutionStatus::kOk);
    fixture.run_until([&] { return session->info().frozen; });
}

TEST_CASE("an idempotency key is of one language's request", "[session][lanes]") {
    ServiceFixture fixture(config_with({"snake"}));
    const auto session = fixture.open();
    auto request = in("", "1");
    request.idempotency_key = "key";
    const auto first = session->begin(request);
    REQUIRE(first.has_value());
    request.language = "python";  // the same in other words
    CHECK(session->begin(request).value() == first.value());
    request.language = "snake";
    const auto other = session->begin(request);
    REQUIRE(other.has_error());
    CHECK(other.error().code() == ErrorCode::kInvalidArgument);
    CHECK(finish(fixture, *first.value()).status == ExecutionStatus::kOk);
}

}  // namespace cellkeep::test
