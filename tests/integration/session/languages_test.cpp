// SPDX-License-Identifier: Apache-2.0
//
// Sessions in which several languages run: what each has of its own, and what they share.
#include "tests/integration/session/languages_fixture.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <utility>

namespace cellkeep::test {

using session::Death;
using session::ExecutionPhase;
using session::ExecutionStatus;
using session::KernelState;
using session::SessionOptions;

TEST_CASE("each language of a session has its own state, and all its files", "[session][lanes]") {
    ServiceFixture fixture(config_with({"snake"}));
    const auto session = fixture.open();
    CHECK(fixture.execute(*session, in("", "x = 'mine'")).status == ExecutionStatus::kOk);
    CHECK(
        fixture.execute(*session, in("snake", "x = 'other'; open('file', 'w').write('shared')"))
            .status == ExecutionStatus::kOk);
    CHECK(
        fixture.execute(*session, in("python", "print(x, open('file').read())")).stdout_text ==
        "mine shared\n");
    const auto other = fixture.execute(*session, in("snake", "print(x)"));
    CHECK(other.stdout_text == "other\n");
    CHECK(other.execution_count == 2);
    CHECK(
        fixture
            .execute(*session, in("snake", "import os; print(os.environ['CELLKEEP_SESSION_ID'])"))
            .stdout_text == session->id() + "\n");
    const auto executions = session->list_executions();
    REQUIRE(executions.size() == 5);
    CHECK(executions[0]->order().language == "python");
    CHECK(executions[1]->order().language == "snake");
}

TEST_CASE("a session says which languages it offers and which it has used", "[session][lanes]") {
    ServiceFixture fixture(config_with({"snake", "viper"}));
    const auto session = fixture.open();
    const auto before = session->info().languages;
    REQUIRE(before.size() == 3);
    CHECK(before[0].name == "python");
    CHECK(before[0].state == KernelState::kIdle);
    CHECK_FALSE(before[1].state.has_value());
    CHECK_FALSE(before[2].state.has_value());
    CHECK(fixture.execute(*session, in("viper", "1")).status == ExecutionStatus::kOk);
    CHECK(state_of(*session, "viper") == KernelState::kIdle);
    CHECK(session->info().language == "python");

    SessionOptions options;
    options.language = "snake";
    const auto snake = fixture.open(std::move(options));
    CHECK(snake->info().languages[0].name == "snake");
    CHECK(fixture.execute(*snake, in("python", "print(1)")).stdout_text == "1\n");
}

TEST_CASE(
    "executions of different languages overlap, those of one keep their order",
    "[session][lanes]") {
    ServiceFixture fixture(config_with({"snake"}));
    const auto session = fixture.open();
    const auto first = begin(*session, "python", until("go"));
    wait_for_waiting(fixture, *first);
    const auto second = begin(*session, "snake", until("go-on"));
    const auto third = begin(*session, "snake", "print(sorted(os.listdir('.')))");
    wait_for_waiting(fixture, *second);
    CHECK(first->phase() == ExecutionPhase::kRunning);
    CHECK(second->phase() == ExecutionPhase::kRunning);
    CHECK(third->phase() == ExecutionPhase::kQueued);
    CHECK(session->info().state == KernelState::kBusy);
    CHECK(state_of(*session, "snake") == KernelState::kBusy);
    auto workspace = session->workspace();
    REQUIRE(workspace.value().write_file("go-on", "").has_value());
    CHECK(finish(fixture, *second).status == ExecutionStatus::kOk);
    CHECK_THAT(finish(fixture, *third).stdout_text, Catch::Contains("'go-on'"));
    CHECK(first->phase() == ExecutionPhase::kRunning);
    REQUIRE(workspace.value().write_file("go", "").has_value());
    CHECK(finish(fixture, *first).status == ExecutionStatus::kOk);
}

TEST_CASE("a restart is of one language and leaves the others alone", "[session][lanes]") {
    ServiceFixture fixture(config_with({"snake"}));
    const auto session = fixture.open();
    CHECK(fixture.execute(*session, in("python", "x = 1")).status == ExecutionStatus::kOk);
    CHECK(fixture.execute(*session, in("snake", "x = 2")).status == ExecutionStatus::kOk);
    const auto running = begin(*session, "python", until("go"));
    wait_for_waiting(fixture, *running);
    REQUIRE(fixture.run(session->restart_language("snake")).has_value());
    CHECK(fixture.execute(*session, in("snake", "x")).error->name == "NameError");
    CHECK(running->phase() == ExecutionPhase::kRunning);
    REQUIRE(session->workspace().value().write_file("go", "").has_value());
    CHECK(finish(fixture, *running).status == ExecutionStatus::kOk);
    CHECK(fixture.execute(*session, in("python", "print(x)")).stdout_text == "1\n");

    CHECK(fixture.execute(*session, in("snake", "x = 3")).status == ExecutionStatus::kOk);
    REQUIRE(fixture.run(session->restart()).has_value());
    CHECK(fixture.execute(*session, in("python", "x")).error->name == "NameError");
    CHECK(fixture.execute(*session, in("snake", "print(x)")).stdout_text == "3\n");
    CHECK(session->info().restarts == 2);
}

TEST_CASE("the death of one language is that language's alone", "[session][lanes]") {
    ServiceFixture fixture(config_with({"snake"}));
    const auto session = fixture.open();
    CHECK(
        fixture
            .execute(
                *session,
                in("python",
                   "x = 1\nimport subprocess\nkept = subprocess.Popen(['sleep', '1000'])"))
            .status == ExecutionStatus::kOk);
    const auto running = begin(*session, "python", until("go"));
    wait_for_waiting(fixture, *running);
    const auto died = fixture.execute(
        *session,
        in("snake",
           "import os, subprocess\n"
           "print(subprocess.Popen(['sleep', '2000']).pid, file=open('left', 'w'))\n"
           "os._exit(3)"));
    CHECK(died.status == ExecutionStatus::kDead);
    REQUIRE(died.death.has_value());
    CHECK(died.death->kind == Death::Kind::kExited);
    CHECK(died.death->detail == 3);
    CHECK_FALSE(died.state_kept);
    // It has a fresh interpreter, and what the old one left is gone.
    CHECK(fixture.execute(*session, in("snake", "print(1)")).stdout_text == "1\n");
    CHECK(running->phase() == ExecutionPhase::kRunning);
    REQUIRE(session->workspace().value().write_file("go", "").has_value());
    CHECK(finish(fixture, *running).status == ExecutionStatus::kOk);
    const auto after = fixture.execute(
        *session,
        in("python",
           "import os\n"
           "pid = int(open('left').read())\n"
           "while os.path.exists(f'/proc/{pid}'): pass\n"
           "print(x, kept.poll())"));
    CHECK(after.stdout_text == "1 None\n");
    CHECK(session->info().restarts == 1);

    // And the other way round: the one that front ends see.
    CHECK(fixture.execute(*session, in("snake", "x = 2")).status == ExecutionStatus::kOk);
    CHECK(
        fixture.execute(*session, in("python", "import os; os._exit(4)")).status ==
        ExecutionStatus::kDead);
    CHECK(fixture.execute(*session, in("snake", "print(x)")).stdout_text == "2\n");
    CHECK(fixture.execute(*session, in("python", "print(1)")).stdout_text == "1\n");
}

TEST_CASE("an interrupt is of one language, or of all", "[session][lanes]") {
    ServiceFixture fixture(config_with({"snake"}));
    const auto session = fixture.open();
    const auto one = begin(*session, "python", until("one"));
    auto other = begin(*session, "snake", until("other"));
    wait_for_waiting(fixture, *one);
    wait_for_waiting(fixture, *other);
    REQUIRE(session->interrupt_language("snake").has_value());
    CHECK(finish(fixture, *other).status == ExecutionStatus::kInterrupted);
    CHECK(one->phase() == ExecutionPhase::kRunning);

    other = begin(*session, "snake", until("third"));
    wait_for_waiting(fixture, *other);
    REQUIRE(session->interrupt_execution(other->id()).has_value());
    CHECK(finish(fixture, *other).status == ExecutionStatus::kInterrupted);
    CHECK(one->phase() == ExecutionPhase::kRunning);

    other = begin(*session, "snake", until("fourth"));
    wait_for_waiting(fixture, *other);
    REQUIRE(session->interrupt().has_value());
    CHECK(finish(fixture, *other).status == ExecutionStatus::kInterrupted);
    CHECK(finish(fixture, *one).status == ExecutionStatus::kInterrupted);
}

TEST_CASE("languages that the server does not have, or that have not started", "[session][lanes]") {
    ServiceFixture fixture(config_with({"snake"}));
    const auto session = fixture.open();
    const auto unknown = session->begin(in("cobol", "1"));
    REQUIRE(unknown.has_error());
    CHECK(unknown.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(unknown.error().message(), Catch::StartsWith("language: "));
    const auto check = [](const Status& status, ErrorCode code) {
        REQUIRE(status.has_error());
        CHECK(status.error().code() == code);
        CHECK_THAT(status.error().message(), Catch::StartsWith("language: "));
    };
    check(session->interrupt_language("cobol"), ErrorCode::kInvalidArgument);
    check(session->interrupt_language("snake"), ErrorCode::kConflict);
    check(fixture.run(session->restart_language("cobol")), ErrorCode::kInvalidArgument);
    check(fixture.run(session->restart_language("snake")), ErrorCode::kConflict);
    CHECK(session->info().executions == 0);
}

}  // namespace cellkeep::test
