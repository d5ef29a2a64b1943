// SPDX-License-Identifier: Apache-2.0
#include "tests/support/input_files.hpp"
#include "tests/unit/kernel/run_fixture.hpp"

#include <csignal>
#include <filesystem>
#include <future>

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;
using protocol::Message;
using test::by_bytes;
using test::by_name;
using test::Names;
using test::RunFixture;

TEST_CASE("a kernel that dies while files are being written", "[session][run]") {
    RunFixture fixture;
    fixture.source.write("in", "input");
    // The thread that copies waits until the kernel has died.
    std::promise<void> died;
    fixture.thread->run([until = died.get_future().share()] {
        until.wait();
        return WorkThread::Slice::kDone;
    });
    (void)fixture.begin_execution({by_name("x", "in")});
    CHECK(fixture.kernel().sent.empty());
    fixture.die();
    REQUIRE(fixture.results.size() == 1);
    CHECK(fixture.results[0].status == ExecutionStatus::kDead);
    CHECK_FALSE(fixture.run.is_running());
    CHECK(fixture.starts.processes.size() == 2);
    died.set_value();
    // Its files are not placed any more, and the fresh process gets only its first question.
    std::promise<void> done;
    fixture.thread->run([&done] {
        done.set_value();
        return WorkThread::Slice::kDone;
    });
    done.get_future().wait();
    fixture.io.restart();
    (void)fixture.io.poll();
    CHECK_FALSE(std::filesystem::exists(fixture.target.path("x")));
    CHECK(fixture.kernel().sent.size() == 1);
    CHECK(fixture.results.size() == 1);
}

TEST_CASE("an execution that ends while files are being written never ran", "[session][run]") {
    RunFixture fixture;
    fixture.source.write("in", "input");
    SECTION("by an interrupt") {
        (void)fixture.begin_execution({by_name("x", "in")});
        CHECK(fixture.run.interrupt().has_value());
        REQUIRE(fixture.results.size() == 1);
        CHECK(fixture.results[0].status == ExecutionStatus::kInterrupted);
    }
    SECTION("by its deadline") {
        (void)fixture.begin_execution({by_name("x", "in")}, 0ms);
        REQUIRE(fixture.results.size() == 1);
        CHECK(fixture.results[0].status == ExecutionStatus::kTimeout);
        CHECK(fixture.logged == std::vector<LimitReason>{LimitReason::kWallTimeout});
    }
    SECTION("because they cannot be placed") {
        fixture.target.make_directory("x");
        (void)fixture.begin_execution({by_bytes("x", "1")});
        REQUIRE(fixture.results.size() == 1);
        CHECK(fixture.results[0].status == ExecutionStatus::kError);
        CHECK(fixture.results[0].error->kind == "files");
    }
    CHECK(fixture.kernel().sent.empty());
    CHECK(fixture.kernel().signals.empty());
    CHECK(fixture.take_published() == Names{"busy", "idle"});
    CHECK(fixture.over == Names{"execute_request"});
    fixture.io.restart();
    (void)fixture.io.run_for(0s);
    CHECK(fixture.results.size() == 1);
}

TEST_CASE("the files of a run are those that it made before its idle", "[session][run]") {
    RunFixture fixture;
    const Message request = fixture.begin_execution({});
    fixture.say_busy(request);
    const bool makes_one = GENERATE(true, false);
    if (makes_one) {
        fixture.target.write("made", "1");
    }
    fixture.reply(request, "ok");
    fixture.say_idle(request);
    fixture.until([&] { return !fixture.results.empty(); });
    CHECK(fixture.results[0].artifacts.size() == (makes_one ? 1 : 0));
    CHECK(fixture.results[0].artifacts_complete);
    // Between two runs: of neither.
    fixture.target.write("between", "1");
    const Message next = fixture.begin_execution({});
    fixture.say_busy(next);
    fixture.reply(next, "ok");
    fixture.say_idle(next);
    fixture.until([&] { return fixture.results.size() == 2; });
    CHECK(fixture.results[1].artifacts.empty());
}

TEST_CASE("an interrupt waits until the kernel has begun", "[session][run]") {
    RunFixture fixture;
    CHECK(fixture.run.interrupt().has_value());  // nothing to stop
    const Message request = fixture.begin();
    CHECK(fixture.run.interrupt().has_value());
    CHECK(fixture.kernel().signals.empty());
    fixture.say_busy(request);
    CHECK(fixture.kernel().signals == std::vector<int>{SIGINT});
    fixture.say_busy(request);
    CHECK(fixture.kernel().signals.size() == 1);
    CHECK(fixture.run.cut() == Cut::kInterrupt);
}

TEST_CASE(
    "a deadline that passes during an interrupt is the reason in the answer", "[session][run]") {
    RunFixture fixture;
    fixture.limits.wall = 3ms;
    const Message request = fixture.begin();
    fixture.say_busy(request);
    CHECK(fixture.run.interrupt().has_value());
    CHECK(fixture.kernel().signals == std::vector<int>{SIGINT});
    fixture.until([&] { return fixture.run.cut() == Cut::kWallTimeout; });
    CHECK(fixture.kernel().signals.at(1) == SIGINT);
    CHECK(fixture.take_published() == Names{"busy", "stream"});  // which limit it was
    SECTION("it stops") {
        fixture.reply(request, "error");
        fixture.say_idle(request);
        CHECK(fixture.logged == std::vector<LimitReason>{LimitReason::kWallTimeout});
        CHECK(fixture.over.size() == 1);
    }
    SECTION("it does not stop, and is killed") {
        fixture.until([&] { return fixture.process.is_killed_for(Death::Kind::kWallTimeout); });
        fixture.die();
        CHECK(fixture.process.death()->kind == Death::Kind::kWallTimeout);
        CHECK(fixture.client->types() == Names{"execute_reply"});
    }
}

TEST_CASE("a request whose kernel dies is answered once", "[session][run]") {
    RunFixture fixture;
    const Message request = fixture.begin();
    fixture.say_busy(request);
    (void)fixture.take_published();
    SECTION("with the death") {
        fixture.die();
        CHECK(fixture.client->types() == Names{"execute_reply"});
        CHECK(fixture.client->delivered[0].parse_content().value()["ename"] == "KernelDied");
        CHECK(fixture.take_published() == Names{"error", "idle", "restarting"});
    }
    SECTION("unless it had its reply") {
        fixture.reply(request);
        fixture.die();
        CHECK(fixture.client->types() == Names{"execute_reply"});
        CHECK(fixture.client->delivered[0].parse_content().value()["status"] == "ok");
        CHECK(fixture.take_published() == Names{"stream", "idle", "restarting"});
    }
    SECTION("without an alarm if that was asked for") {
        (void)fixture.run.fail({Death::Kind::kRequested, 0}, "restarted");
        CHECK(fixture.take_published() == Names{"idle"});
        CHECK(fixture.client->types() == Names{"execute_reply"});
    }
    CHECK_FALSE(fixture.run.fail({Death::Kind::kExited, 0}, "again").has_value());
    CHECK(fixture.client->delivered.size() == 1);
}

TEST_CASE("a kernel that takes nothing is killed", "[session][run]") {
    RunFixture fixture;
    fixture.kernel().link = Error(ErrorCode::kLimitExceeded, "full");
    (void)fixture.begin();
    CHECK(fixture.process.is_killed_for(Death::Kind::kLinkBroken));
    CHECK(fixture.run.is_running());  // its end comes with the exit
    fixture.die();
    CHECK(fixture.client->types() == Names{"execute_reply"});
}

}  // namespace
}  // namespace cellkeep::session
