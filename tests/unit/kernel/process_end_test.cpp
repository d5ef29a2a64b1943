// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/process_end.hpp"

#include "tests/support/start_time.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <string>

using cellkeep::protocol::Channel;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using cellkeep::sandbox::WorkerExit;
using cellkeep::session::test::kStart;
using namespace cellkeep::session;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

constexpr Death kAsked{Death::Kind::kRequested, 0};
constexpr Death kCrash{Death::Kind::kSignal, SIGSEGV};
constexpr std::uint64_t kOomKillsBefore = 3;

WorkerExit exit_with(int code) {
    WorkerExit exit;
    exit.status = code;
    return exit;
}

WorkerExit exit_by(int signal) {
    WorkerExit exit = exit_with(signal);
    exit.signaled = true;
    return exit;
}

ProcessEnd make_end() {
    ProcessEnd end;
    end.begin();
    end.see_oom_kills(kOomKillsBefore);
    return end;
}

std::string reason_after(const WorkerExit& exit, std::uint64_t oom_kills, Cut cut = Cut::kNone) {
    ProcessEnd end = make_end();
    end.on_exit(exit, oom_kills, cut);
    CHECK(end.is_ended());
    return to_string(end.reason());
}

Message cell() {
    return Message::make(
        Channel::kShell,
        make_header("execute_request", "client", "user"),
        json::object(),
        json::object());
}

}  // namespace

TEST_CASE("an exit that the server did not cause has its own reason", "[session][end]") {
    CHECK(reason_after(exit_with(3), kOomKillsBefore) == "exited(3)");
    CHECK(reason_after(exit_by(SIGSEGV), kOomKillsBefore) == "signal(11)");
    CHECK(reason_after(exit_by(SIGKILL), kOomKillsBefore) == "signal(9)");
    CHECK(reason_after(exit_by(SIGKILL), kOomKillsBefore + 1) == "oom");
    // The kernel killed a child for lack of memory, and the interpreter ended on its own.
    CHECK(reason_after(exit_with(1), kOomKillsBefore + 1) == "exited(1)");
    CHECK(reason_after(exit_by(SIGSEGV), kOomKillsBefore + 1) == "signal(11)");
}

TEST_CASE("an exit at a deadline's interrupt is the deadline's", "[session][end]") {
    CHECK(reason_after(exit_by(SIGINT), kOomKillsBefore, Cut::kWallTimeout) == "wall_timeout");
    CHECK(reason_after(exit_with(1), kOomKillsBefore, Cut::kCpuTimeout) == "cpu_timeout");
    CHECK(reason_after(exit_with(1), kOomKillsBefore, Cut::kOutputLimit) == "output_limit");
    CHECK(reason_after(exit_by(SIGINT), kOomKillsBefore, Cut::kInterrupt) == "signal(2)");
}

TEST_CASE("an OOM kill counts for one process only", "[session][end]") {
    ProcessEnd end = make_end();
    end.on_exit(exit_by(SIGKILL), kOomKillsBefore + 1, Cut::kNone);
    CHECK(end.reason().kind == Death::Kind::kOom);
    (void)end.complete();
    end.begin();
    end.on_exit(exit_by(SIGKILL), kOomKillsBefore + 1, Cut::kNone);
    CHECK(end.reason().kind == Death::Kind::kSignal);
}

TEST_CASE("a process that could not start says why", "[session][end]") {
    ProcessEnd end = make_end();
    end.add_words("some text");
    WorkerExit exit = exit_with(1);
    exit.failure = "execve: no such file";
    end.on_exit(exit, kOomKillsBefore, Cut::kNone);
    CHECK(end.reason().kind == Death::Kind::kStartFailed);
    CHECK(end.last_words() == "execve: no such file");
    end.begin();
    CHECK(end.last_words().empty());
}

TEST_CASE("the last words are bounded and the newest", "[session][end]") {
    ProcessEnd end = make_end();
    end.add_words(std::string(kLastWordsBytesMax, 'a'));
    end.add_words("the end");
    CHECK(end.last_words().size() == kLastWordsBytesMax);
    CHECK_THAT(end.last_words(), Catch::EndsWith("athe end"));
}

TEST_CASE("the first reason to kill is the reason", "[session][end]") {
    ProcessEnd end = make_end();
    CHECK_FALSE(end.is_near());
    CHECK(end.kill({Death::Kind::kOutputLimit, 0}));
    CHECK(end.kill({Death::Kind::kLinkBroken, 0}));
    CHECK(end.is_near());
    CHECK_FALSE(end.is_ended());
    CHECK(end.is_killed_for(Death::Kind::kOutputLimit));
    CHECK_FALSE(end.is_killed_for(Death::Kind::kLinkBroken));
    end.on_exit(exit_by(SIGKILL), kOomKillsBefore + 1, Cut::kWallTimeout);
    CHECK(end.reason().kind == Death::Kind::kOutputLimit);
}

TEST_CASE("what has ended is not killed again", "[session][end]") {
    ProcessEnd end = make_end();
    end.on_exit(exit_with(3), kOomKillsBefore, Cut::kNone);
    CHECK_FALSE(end.kill({Death::Kind::kLinkBroken, 0}));
    CHECK(to_string(end.reason()) == "exited(3)");
}

TEST_CASE("a restart that is asked for during a sweep decides anew", "[session][end]") {
    ProcessEnd end = make_end();
    end.on_exit(exit_with(3), kOomKillsBefore, Cut::kNone);
    const Message informed = cell();
    end.inform(informed, false);  // the sixth death: it would stay dead
    CHECK_FALSE(end.kill(kAsked));
    CHECK(end.reason().kind == Death::Kind::kRequested);
    const ProcessEnd::Settled settled = end.complete();
    CHECK_FALSE(settled.restarts.has_value());  // to be decided, with the new reason
    REQUIRE(settled.informed.has_value());      // but its client gets no second message
    CHECK(settled.informed->header().msg_id == informed.header().msg_id);
}

TEST_CASE("what is settled about an end holds for that one only", "[session][end]") {
    ProcessEnd end = make_end();
    end.on_exit(exit_with(3), kOomKillsBefore, Cut::kNone);
    end.inform(cell(), true);
    const ProcessEnd::Settled settled = end.complete();
    CHECK(settled.restarts == true);
    CHECK(settled.informed.has_value());
    CHECK_FALSE(end.is_ended());
    const ProcessEnd::Settled again = end.complete();
    CHECK_FALSE(again.restarts.has_value());
    CHECK_FALSE(again.informed.has_value());
}

TEST_CASE("a kernel whose processes do not end stays dead", "[session][end]") {
    ProcessEnd end = make_end();
    CHECK(end.kill(kAsked));
    end.inform(cell(), true);
    end.give_up();
    CHECK(end.reason().kind == Death::Kind::kRequested);
    const ProcessEnd::Settled settled = end.complete();
    CHECK(settled.restarts == false);
    CHECK(settled.informed.has_value());
}

TEST_CASE(
    "a sandbox that dies is the reason unless the process was being killed", "[session][end]") {
    ProcessEnd end = make_end();
    CHECK(end.on_sandbox_died().kind == Death::Kind::kSandboxDied);
    CHECK(end.kill({Death::Kind::kWallTimeout, 0}));
    CHECK(end.on_sandbox_died().kind == Death::Kind::kWallTimeout);
}

TEST_CASE("a new process begins without reasons", "[session][end]") {
    ProcessEnd end = make_end();
    CHECK(end.kill({Death::Kind::kOutputLimit, 0}));
    end.on_exit(exit_by(SIGKILL), kOomKillsBefore, Cut::kNone);
    end.give_up();
    end.begin();
    CHECK_FALSE(end.is_near());
    CHECK_FALSE(end.complete().restarts.has_value());
}

TEST_CASE("a restart follows a death within the budget", "[session][restart]") {
    RestartPolicy policy(2, 60s);
    CHECK(policy.allows(kCrash, false, true, kStart));
    CHECK(policy.allows(kCrash, false, true, kStart + 1s));
    CHECK_FALSE(policy.allows(kCrash, false, true, kStart + 2s));
    SECTION("which comes back with time") {
        CHECK(policy.allows(kCrash, false, true, kStart + 61s));
    }
    SECTION("which a person who asks for a restart renews") {
        policy.forget_deaths();
        CHECK(policy.allows(kCrash, false, true, kStart + 2s));
    }
    SECTION("and a restart that is asked for needs none") {
        CHECK(policy.allows(kAsked, false, true, kStart + 2s));
        CHECK(policy.allows(kAsked, false, false, kStart + 2s));
    }
}

TEST_CASE("no restart follows where none would help", "[session][restart]") {
    RestartPolicy policy(1, 60s);
    CHECK_FALSE(policy.allows(kCrash, false, false, kStart));  // it has never worked
    CHECK_FALSE(policy.allows({Death::Kind::kStartFailed, 0}, false, false, kStart));
    CHECK_FALSE(policy.allows({Death::Kind::kSandboxDied, 0}, false, true, kStart));
    CHECK_FALSE(policy.allows(kCrash, true, true, kStart));  // a spare is replaced
    CHECK_FALSE(policy.allows(kAsked, true, true, kStart));
    CHECK(policy.allows(kCrash, false, true, kStart));  // none of these was counted
    CHECK(policy.restarts() == 0);
    policy.count_restart();
    CHECK(policy.restarts() == 1);
}
