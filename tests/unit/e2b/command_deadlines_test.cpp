// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/command_deadlines.hpp"

#include "kernel-manager/e2b/envd/open_streams.hpp"
#include "tests/unit/service/fake_session_service.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>

namespace cellkeep::e2b {
namespace {

using namespace std::chrono_literals;
using Clock = CommandDeadlines::Clock;

/// A session in which one command runs.
struct DeadlineFixture {
    void run() { session->fake_commands.poll(); }
    std::size_t kills() const {
        const auto& signals = session->fake_commands.signals;
        return static_cast<std::size_t>(
            std::count_if(signals.begin(), signals.end(), [](const auto& sent) {
                return sent.second == SIGKILL;
            }));
    }

    session::test::FakeSessionService backend;
    std::shared_ptr<session::test::FakeSession> session = backend.add();
    std::shared_ptr<process::Command> command = session->fake_commands.start_one();
    CommandDeadlines deadlines{backend.io};
};

TEST_CASE("a command is killed when its time is over, once", "[e2b][deadlines]") {
    DeadlineFixture fixture;
    fixture.deadlines.set(fixture.session, fixture.command, Clock::now() - 1s);
    REQUIRE(fixture.deadlines.list().size() == 1);
    CHECK(fixture.deadlines.list()[0].command_id == fixture.command->id());
    CHECK(fixture.kills() == 0);
    fixture.run();
    CHECK(fixture.kills() == 1);
    CHECK(fixture.deadlines.list().empty());
}

TEST_CASE("a command that has ended is not waited for", "[e2b][deadlines]") {
    DeadlineFixture fixture;
    fixture.deadlines.set(fixture.session, fixture.command, Clock::now() + 1h);
    fixture.command->finish({process::CommandEnd::Kind::kExited, 0, ""});
    fixture.run();
    CHECK(fixture.deadlines.list().empty());
    CHECK(fixture.kills() == 0);
    fixture.deadlines.set(fixture.session, fixture.command, Clock::now() + 1h);
    CHECK(fixture.deadlines.list().empty());
}

TEST_CASE("who leaves kills nothing, and the next one does at the same time", "[e2b][deadlines]") {
    DeadlineFixture fixture;
    const auto due = Clock::now() - 1s;
    fixture.deadlines.set(fixture.session, fixture.command, due);
    const auto passed = fixture.deadlines.list();
    fixture.deadlines.leave();
    fixture.run();
    CHECK(fixture.kills() == 0);
    CHECK(fixture.deadlines.list().empty());
    REQUIRE(passed.size() == 1);
    CHECK(passed[0].due == due);
    CHECK(passed[0].session_id == fixture.session->id());
    CommandDeadlines next(fixture.backend.io);
    next.set(fixture.session, fixture.command, passed[0].due);
    fixture.run();
    CHECK(fixture.kills() == 1);
}

TEST_CASE("deadlines end with their owner", "[e2b][deadlines]") {
    DeadlineFixture fixture;
    auto deadlines = std::make_unique<CommandDeadlines>(fixture.backend.io);
    deadlines->set(fixture.session, fixture.command, Clock::now() - 1s);
    deadlines.reset();
    fixture.run();
    CHECK(fixture.kills() == 0);
}

TEST_CASE("streams are counted by session for as long as they are open", "[e2b][streams]") {
    auto streams = std::make_unique<OpenStreams>();
    CHECK_FALSE(streams->any("ses_1"));
    auto one = streams->open("ses_1");
    auto two = streams->open("ses_1");
    CHECK(streams->any("ses_1"));
    CHECK_FALSE(streams->any("ses_2"));
    one.reset();
    CHECK(streams->any("ses_1"));
    two.reset();
    CHECK_FALSE(streams->any("ses_1"));
    auto last = streams->open("ses_1");
    streams.reset();
    last.reset();  // behind the object
}

}  // namespace
}  // namespace cellkeep::e2b
