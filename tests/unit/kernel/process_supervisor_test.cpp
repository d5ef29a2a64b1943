// SPDX-License-Identifier: Apache-2.0
#include "protocol/internal_request.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/kernel/supervisor_fixture.hpp"

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;
using protocol::Channel;
using protocol::Message;
using test::answer;
using test::Calls;
using test::code_of_wait;
using test::is_killed;
using test::status_of;
using test::SupervisorFixture;

TEST_CASE("a process is ready when it has answered its first question", "[session][process]") {
    SupervisorFixture fixture;
    REQUIRE(fixture.supervisor.launch().has_value());
    const auto ready = fixture.spawn(fixture.supervisor.wait_ready());
    fixture.poll();
    CHECK(fixture.process().sent.at(0).header().msg_type == "kernel_info_request");
    CHECK(fixture.take_calls() == Calls{"started"});
    CHECK_FALSE(ready->has_value());
    CHECK_FALSE(fixture.supervisor.takes_requests());
    // The status messages of the first question are not passed on; all other messages are.
    fixture.process().say(status_of(fixture.process().sent[0], "busy"));
    CHECK(fixture.take_calls().empty());
    fixture.process().answer_info({{"implementation", "x"}}, "its-name");
    CHECK(fixture.take_calls() == Calls{"+ready", "idle", "ready"});
    fixture.poll();
    REQUIRE(ready->has_value());
    CHECK((*ready)->has_value());
    CHECK(fixture.supervisor.takes_requests());
    CHECK(fixture.supervisor.info()->at("implementation") == "x");
    CHECK(fixture.supervisor.messages().status("idle", nullptr).header().session == "its-name");
    fixture.process().answer_info();  // a second answer is an answer to nothing
    CHECK(fixture.take_calls() == Calls{"message kernel_info_reply"});
}

TEST_CASE("a process that does not become ready is killed", "[session][process]") {
    SupervisorFixture fixture(false, 0ms);
    REQUIRE(fixture.supervisor.launch().has_value());
    const auto ready = fixture.spawn(fixture.supervisor.wait_ready());
    SECTION("it says nothing") {
        fixture.process().events.on_text(OutputStream::kStderr, "no such module");
    }
    SECTION("its answer is longer than may be kept") {
        fixture.process().answer_info({{"x", std::string(limits::kKernelInfoBytesMax, 'x')}});
        fixture.process().events.on_text(OutputStream::kStderr, "no such module");
    }
    fixture.until([&] { return is_killed(fixture.process()); });
    CHECK_FALSE(fixture.supervisor.takes_requests());
    fixture.crash();
    CHECK(
        fixture.take_calls() ==
        Calls{"started", "+died", "lost: start_failed", "dead", "left dead: start_failed"});
    fixture.poll();
    CHECK(code_of_wait(*ready) == ErrorCode::kTimeout);
    CHECK((*ready)->error().message().find("no such module") != std::string::npos);
}

TEST_CASE("an answer at the bound is kept", "[session][process]") {
    SupervisorFixture fixture;
    REQUIRE(fixture.supervisor.launch().has_value());
    const std::size_t around = nlohmann::json({{"x", ""}}).dump().size();
    fixture.process().answer_info({{"x", std::string(limits::kKernelInfoBytesMax - around, 'x')}});
    CHECK(fixture.supervisor.info().has_value());
    CHECK(fixture.process().signals.empty());
}

TEST_CASE("a crashed process is swept before the next one starts", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    fixture.exit();
    CHECK(fixture.sweeps == 1);
    CHECK(fixture.supervisor.has_process());
    CHECK(fixture.supervisor.has_ended());
    CHECK_FALSE(fixture.supervisor.takes_requests());
    CHECK_FALSE(fixture.supervisor.is_of(1));  // its exit is no news any more
    CHECK(fixture.calls.empty());
    fixture.process().left = {
        status_of(fixture.process().sent[0], "idle"),
        answer(fixture.process().sent[0], Channel::kIopub, "stream", nlohmann::json::object())};
    fixture.supervisor.on_swept();
    CHECK(
        fixture.take_calls() == Calls{
                                    "message stream",
                                    "+died",
                                    "lost: exited(3), restarts",
                                    "+restart",
                                    "restarting",
                                    "started"});
    CHECK(fixture.starts.processes.size() == 2);
    CHECK(fixture.starts.processes[0]->gone);
    CHECK(fixture.supervisor.restarts() == 1);
    CHECK(fixture.supervisor.death()->detail == 3);
    fixture.process().answer_info();
    CHECK_FALSE(fixture.supervisor.death().has_value());
}

TEST_CASE("an OOM kill is the death of the process that ran then", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    fixture.oom_kills = 1;
    const sandbox::WorkerExit killed{.id = 1, .signaled = true, .status = SIGKILL, .failure = {}};
    SECTION("it came while it lived") {
        fixture.supervisor.on_exit(killed, Cut::kNone);
        fixture.supervisor.on_swept();
        CHECK(fixture.supervisor.death()->kind == Death::Kind::kOom);
        // The next process begins with that count.
        fixture.process().answer_info();
        fixture.supervisor.on_exit(
            {.id = 2, .signaled = true, .status = SIGKILL, .failure = {}}, Cut::kNone);
        fixture.supervisor.on_swept();
        CHECK(fixture.supervisor.death()->kind == Death::Kind::kSignal);
    }
    SECTION("it came before its run") {
        fixture.supervisor.see_oom_kills(1);
        fixture.supervisor.on_exit(killed, Cut::kNone);
        fixture.supervisor.on_swept();
        CHECK(fixture.supervisor.death()->kind == Death::Kind::kSignal);
    }
    SECTION("its deadline's interrupt was first") {
        fixture.supervisor.on_exit(killed, Cut::kWallTimeout);
        fixture.supervisor.on_swept();
        CHECK(fixture.supervisor.death()->kind == Death::Kind::kWallTimeout);
    }
}

TEST_CASE("a process that is gone says nothing any more", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    const auto first = fixture.starts.processes[0];
    fixture.crash();
    fixture.take_calls();
    first->say(answer(first->sent[0], Channel::kIopub, "stream", nlohmann::json::object()));
    first->events.on_text(OutputStream::kStdout, "text");
    first->events.on_link_closed(Error(ErrorCode::kProtocol, "closed"));
    CHECK(fixture.take_calls().empty());
    fixture.process().answer_info();
    fixture.take_calls();
    fixture.process().events.on_text(OutputStream::kStdout, "text");
    CHECK(fixture.take_calls() == Calls{"text"});  // and the fresh one does
    fixture.owner.reset();                         // the session is being destroyed
    fixture.process().events.on_text(OutputStream::kStdout, "text");
    CHECK(fixture.take_calls().empty());
}

TEST_CASE("a session may end while the last output of its process is taken", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    fixture.on_message = [&fixture](const Message&) {
        CHECK(fixture.supervisor.is_draining());
        fixture.supervisor.close();
        fixture.supervisor.end({Death::Kind::kRequested, 0});
    };
    const Message stream =
        answer(fixture.process().sent[0], Channel::kIopub, "stream", nlohmann::json::object());
    fixture.process().left = {stream, stream};
    fixture.crash();
    CHECK(fixture.take_calls() == Calls{"message stream", "+died", "lost: requested"});
    CHECK(fixture.starts.processes.size() == 1);
}

TEST_CASE(
    "a closed link is an exit that is on its way, or a reason to kill", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    fixture.process().events.on_link_closed(Error(ErrorCode::kProtocol, "closed"));
    SECTION("the exit comes") {
        fixture.crash();
        CHECK(fixture.supervisor.death()->kind == Death::Kind::kExited);
        CHECK(fixture.starts.processes[0]->signals.empty());
    }
    SECTION("it does not come") {
        fixture.until([&] { return is_killed(fixture.process()); });
        fixture.crash();
        CHECK(fixture.supervisor.death()->kind == Death::Kind::kLinkBroken);
    }
}

TEST_CASE("the back-pressure of an ended process is lifted", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    fixture.supervisor.pause_reading();
    CHECK(fixture.process().paused);
    fixture.supervisor.resume_reading();
    CHECK_FALSE(fixture.process().paused);
    fixture.on_message = [&fixture](const Message&) { fixture.supervisor.pause_reading(); };
    fixture.process().left = {
        answer(fixture.process().sent[0], Channel::kIopub, "stream", nlohmann::json::object())};
    fixture.crash();
    CHECK_FALSE(fixture.starts.processes[0]->paused);
}

TEST_CASE("an interrupt is a signal to a process that lives", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    CHECK(fixture.supervisor.interrupt().has_value());
    CHECK(fixture.process().signals == std::vector<int>{SIGINT});
    fixture.exit();
    CHECK(fixture.supervisor.interrupt().has_value());
    CHECK(fixture.process().signals.size() == 1);
}

TEST_CASE("a spare is handed out", "[session][process]") {
    SupervisorFixture fixture(true, 1h);
    fixture.launch_ready();
    CHECK(fixture.supervisor.is_spare());
    SECTION("with nothing to tell it") {
        const auto done = fixture.spawn(fixture.supervisor.adopt(nullptr));
        fixture.poll();
        REQUIRE(done->has_value());
        CHECK((*done)->has_value());
        CHECK(fixture.process().sent.size() == 1);
    }
    SECTION("with something, and it answers") {
        const auto done = fixture.spawn(fixture.supervisor.adopt({{"env", {{"A", "1"}}}}));
        fixture.poll();
        REQUIRE(fixture.process().sent.size() == 2);
        CHECK(fixture.process().sent[1].header().msg_type == protocol::kAdoptRequest);
        CHECK(fixture.supervisor.is_adopting());
        const bool works = GENERATE(true, false);
        fixture.process().say(answer(
            fixture.process().sent[1],
            Channel::kControl,
            "x_reply",
            {{"status", works ? "ok" : "error"}}));
        fixture.poll();
        REQUIRE(done->has_value());
        CHECK((*done)->has_value() == works);
        CHECK_FALSE(fixture.supervisor.is_adopting());
    }
    SECTION("with something, and it dies") {
        const auto done = fixture.spawn(fixture.supervisor.adopt({{"env", {{"A", "1"}}}}));
        fixture.poll();
        fixture.crash();
        fixture.poll();
        CHECK(code_of_wait(*done) == ErrorCode::kUnavailable);
    }
    SECTION("with something, and it takes nothing") {
        fixture.process().link = Error(ErrorCode::kConflict, "closed");
        const auto done = fixture.spawn(fixture.supervisor.adopt({{"env", {{"A", "1"}}}}));
        fixture.poll();
        CHECK(code_of_wait(*done) == ErrorCode::kConflict);
    }
    CHECK_FALSE(fixture.supervisor.is_spare());
}

TEST_CASE("a spare that does not answer is not handed out", "[session][process]") {
    SupervisorFixture fixture(true, 1ms);
    fixture.launch_ready();
    const auto done = fixture.spawn(fixture.supervisor.adopt({{"env", {{"A", "1"}}}}));
    fixture.until([&] { return done->has_value(); });
    CHECK(code_of_wait(*done) == ErrorCode::kTimeout);
}

TEST_CASE(
    "a process is asked whether its run is over when that was claimed", "[session][process]") {
    SupervisorFixture fixture;
    fixture.launch_ready();
    const std::size_t asked = fixture.process().sent.size();
    const auto past = std::chrono::steady_clock::now() - 1s;
    SECTION("and answers") {
        fixture.supervisor.watch_claimed_end(past);
        fixture.until([&] { return fixture.process().sent.size() > asked; });
        fixture.process().say(status_of(fixture.process().sent.back(), "busy"));
        CHECK(fixture.take_calls().empty());  // that is no news
        fixture.io.restart();
        CHECK(fixture.io.run_one() == 1);  // of the timer that was taken back
        CHECK(fixture.process().signals.empty());
    }
    SECTION("when it is not paused any more") {
        fixture.paused_for = 3;
        fixture.supervisor.watch_claimed_end(past);
        fixture.until([&] { return fixture.looks == 3; });
        CHECK(fixture.process().sent.size() == asked);
        fixture.until([&] { return fixture.process().sent.size() > asked; });
        CHECK(fixture.process().signals.empty());
    }
    SECTION("but not if it has begun another") {
        fixture.supervisor.watch_claimed_end(past);
        fixture.supervisor.settle_claimed_end();
        fixture.poll();
        CHECK(fixture.process().sent.size() == asked);
    }
    SECTION("but not if another was sent: that is the question") {
        fixture.running = fixture.process().sent[0];
        bool passed = false;
        Alarm later(fixture.io, [&fixture] { return fixture.owner; });
        fixture.supervisor.watch_claimed_end(past);
        later.set_after(1ms, [&passed] { passed = true; });
        fixture.until([&] { return passed; });
        CHECK(fixture.process().sent.size() == asked);
    }
    SECTION("but not if it has ended") {
        fixture.supervisor.watch_claimed_end(past);
        fixture.exit();
        fixture.poll();
        CHECK(fixture.process().sent.size() == asked);
    }
}

}  // namespace
}  // namespace cellkeep::session
