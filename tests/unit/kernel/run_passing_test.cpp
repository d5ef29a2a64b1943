// SPDX-License-Identifier: Apache-2.0
//
// An execution whose code runs, on its way to another program.
#include "tests/unit/kernel/run_fixture.hpp"

#include <csignal>

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using protocol::Channel;
using protocol::Message;
using test::Names;
using test::RunFixture;

struct Left : RunFixture {
    Left() { passes = true; }
};

void show(const RunFixture& fixture, const Message& request, const std::string& type) {
    fixture.kernel().say(answer(
        request,
        Channel::kIopub,
        type,
        {{"data", {{"text/plain", type}}},
         {"metadata", json::object()},
         {"transient", {{"display_id", "d"}}}}));
}

/// The same execution in the other program.
std::shared_ptr<Execution> again(RunFixture& next, const Execution& execution) {
    Execution::Order order = execution.order();
    order.passes = true;
    auto made = std::make_shared<Execution>(next.io, order);
    made->go_on({execution.created_at(), execution.started_at(), std::nullopt, {}, std::nullopt});
    return made;
}

Status go_on(RunFixture& next, PassedRun passed) {
    passed.execution = again(next, *passed.execution);
    next.execution = passed.execution;
    return next.run.go_on(std::move(passed), ExecutionRecorder("exe_1", "s", {}, 1000));
}

TEST_CASE("a run goes on in another program with all that it said", "[session][run][passing]") {
    Left left;
    const Message request = left.begin_execution({}, 1h);
    CHECK_FALSE(left.run.can_pass());  // its busy has not been heard
    left.say_busy(request);
    left.print(request, "one");
    show(left, request, "display_data");
    left.target.write("early", "x");
    REQUIRE(left.run.can_pass());
    CHECK(left.run.passed_bytes() > 0);
    PassedRun passed = left.run.pass_on();
    CHECK_FALSE(left.run.is_running());
    CHECK(left.run.passed_bytes() == 0);
    CHECK(left.results.empty());
    CHECK(left.over.empty());

    RunFixture next;
    next.target.write("early", "x");
    REQUIRE(go_on(next, std::move(passed)).has_value());
    CHECK(next.run.is_running());
    CHECK(next.kernel().sent.empty());  // it has its request
    CHECK(next.account.runs() == 1);
    REQUIRE(next.run.can_pass());
    next.ask_input(request);
    REQUIRE(next.kernel().sent.size() == 1);
    CHECK(next.kernel().sent[0].parse_content().value()["value"] == "one line");
    show(next, request, "update_display_data");
    next.print(request, "two");
    next.target.write("late", "x");
    next.reply(request);
    next.say_idle(request);
    next.until([&] { return !next.results.empty(); });
    const ExecutionResult& result = next.results[0];
    CHECK(result.status == ExecutionStatus::kOk);
    CHECK(result.stdout_text == "onetwo");
    CHECK(count_displays(result.outputs) == 1);
    CHECK(outputs_text(result.outputs).join().find("update_display_data") != std::string::npos);
    CHECK_FALSE(result.metrics.memory_peak_is_own);
    CHECK(next.account.runs() == 0);
    CHECK_FALSE(next.run.can_pass());
}

TEST_CASE("a run that passes keeps its deadline", "[session][run][passing]") {
    Left left;
    const Message request = left.begin_execution({}, 1h);
    left.say_busy(request);
    PassedRun passed = left.run.pass_on();
    passed.request.started_at -= 1h;
    passed.watch.monitor.began_at -= 1h;
    RunFixture next;
    next.limits.wall = 2h;
    SECTION("which has passed") {
        REQUIRE(go_on(next, std::move(passed)).has_value());
        CHECK(next.run.cut() == Cut::kWallTimeout);
        CHECK(next.kernel().signals == std::vector<int>{SIGINT});
    }
    SECTION("which a client's pause has moved") {
        passed.watch.paused = 1h;
        REQUIRE(go_on(next, std::move(passed)).has_value());
        CHECK(next.run.cut() == Cut::kNone);
        CHECK(next.kernel().signals.empty());
    }
}

TEST_CASE("an interpreter that dies in another program ends its run", "[session][run][passing]") {
    Left left;
    const Message request = left.begin_execution();
    left.say_busy(request);
    left.print(request, "last words");
    RunFixture next;
    REQUIRE(go_on(next, left.run.pass_on()).has_value());
    next.die();
    REQUIRE(next.results.size() == 1);
    CHECK(next.results[0].status == ExecutionStatus::kDead);
    CHECK(next.results[0].stdout_text == "last words");
}

TEST_CASE("a run that asks, is cut short or has ended does not pass", "[session][run][passing]") {
    Left left;
    const Message request = left.begin_execution();
    left.say_busy(request);
    REQUIRE(left.run.can_pass());
    SECTION("it is interrupted") {
        CHECK(left.run.interrupt().has_value());
    }
    SECTION("it has passed a limit") {
        left.run.cut(Cut::kCpuTimeout);
    }
    SECTION("its reply has come, and its idle has not") {
        left.reply(request);
    }
    SECTION("its text is too long for the answer") {
        left.print(request, std::string(1001, 'x'));
    }
    CHECK_FALSE(left.run.can_pass());
}

TEST_CASE("a Jupyter client's run does not pass", "[session][run][passing]") {
    Left left;
    const Message request = left.begin();
    left.say_busy(request);
    CHECK(left.run.is_running());
    CHECK_FALSE(left.run.can_pass());
}

TEST_CASE("outputs that are not what they should be are not taken", "[session][run][passing]") {
    Left left;
    const Message request = left.begin_execution();
    left.say_busy(request);
    show(left, request, "display_data");
    PassedRun passed = left.run.pass_on();
    REQUIRE(passed.recorder.outputs.groups.size() == 1);
    RunFixture next;
    SECTION("a display that is not there") {
        passed.recorder.outputs.groups[0].places = {1};
    }
    SECTION("more displays than places") {
        passed.recorder.outputs.groups[0].shared_count = 2;
    }
    SECTION("text in a display's place") {
        passed.recorder.outputs.outputs[0] = StreamOutput{"stdout", "x"};
    }
    CHECK(go_on(next, std::move(passed)).has_error());
    CHECK_FALSE(next.run.is_running());
}

}  // namespace
}  // namespace cellkeep::session
