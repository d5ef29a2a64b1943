// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/kernel_output.hpp"

#include "protocol/limits.hpp"
#include "tests/support/fake_interpreter.hpp"
#include "tests/support/temporary_workspace.hpp"
#include "tests/support/tracked_execution.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {
namespace {

using protocol::Channel;
using protocol::Message;
using test::answer;

/// A front end that the test can stop from taking more.
class StoppedFront : public OutputObserver {
 public:
    void on_output(const OutputEntry& /*entry*/) override { ++seen; }
    bool congested() const override { return full; }
    int seen = 0;
    bool full = false;
};

struct OutputFixture {
    explicit OutputFixture(bool shown = true)
        : output(
              io,
              shown ? &fanout : nullptr,
              workspace,
              {.note =
                   [this](const Message&, const Message* running) {
                       notes.emplace_back(running != nullptr ? running->header().msg_type : "");
                   },
               .pause_reading = [this] { paused = true; },
               .resume_reading = [this] { paused = false; }},
              [this] { return owner; }) {
        fanout.subscribe(&front);
    }

    boost::asio::io_context io;
    cellkeep::test::TemporaryWorkspace files;
    sandbox::Workspace workspace = files.workspace();
    OutputFanout fanout{100, 1U << 20U};
    StoppedFront front;
    std::shared_ptr<int> owner = std::make_shared<int>(0);
    std::vector<std::string> notes;
    bool paused = false;
    KernelOutput output;
    std::shared_ptr<TrackedExecution> execution = cellkeep::test::make_tracked_execution(io);
    RunningRequest run{
        PendingRequest{
            Message::make(
                Channel::kShell,
                protocol::make_header("execute_request", "client", "user"),
                nlohmann::json::object(),
                {{"code", "1"}}),
            nullptr,
            execution,
            {}},
        1,
        {},
        RunningRequest::Cpu{0}};

    Message stream(const std::string& text) const {
        return answer(
            run.message(), Channel::kIopub, "stream", {{"name", "stdout"}, {"text", text}});
    }
    std::string recorded() const { return execution->recorder.finish(Cut::kNone).stdout_text; }
};

TEST_CASE("output goes to the execution that runs and to front ends", "[session][output]") {
    OutputFixture fixture;
    fixture.output.publish(fixture.stream("before "));  // of no run
    fixture.output.begin_run(fixture.run);
    fixture.output.publish(fixture.stream("text"));
    fixture.output.publish(answer(
        fixture.stream("x"), Channel::kIopub, "stream", {{"name", "stdout"}, {"text", "other"}}));
    fixture.output.end_run();
    fixture.output.publish(fixture.stream(" after"));
    CHECK(fixture.front.seen == 4);
    CHECK(fixture.notes == std::vector<std::string>{"", "execute_request", "execute_request", ""});
    CHECK(fixture.recorded() == "text");
    CHECK(fixture.execution->execution->events().size() == 1);
}

TEST_CASE("a kernel that front ends do not see is recorded, and never waits", "[session][output]") {
    OutputFixture fixture(false);
    fixture.front.full = true;
    fixture.output.begin_run(fixture.run);
    fixture.output.publish(fixture.stream("text"));
    CHECK(fixture.front.seen == 0);
    CHECK_FALSE(fixture.paused);
    CHECK(fixture.recorded() == "text");
}

TEST_CASE("a front end that cannot take more stops the kernel", "[session][output]") {
    OutputFixture fixture;
    fixture.output.begin_run(fixture.run);
    fixture.output.publish(fixture.stream("1"));
    CHECK_FALSE(fixture.paused);
    fixture.front.full = true;
    fixture.output.publish(fixture.stream("2"));
    CHECK(fixture.paused);

    fixture.output.lift_pressure();
    CHECK_FALSE(fixture.paused);
    fixture.output.publish(fixture.stream("3"));
    CHECK_FALSE(fixture.paused);
    fixture.output.restore_pressure();
    fixture.output.publish(fixture.stream("4"));
    CHECK(fixture.paused);
}

TEST_CASE("code that survives an interrupt feels a slow client again", "[session][output]") {
    OutputFixture fixture;
    fixture.front.full = true;
    fixture.output.begin_run(fixture.run);
    (void)fixture.run.interrupt();
    fixture.output.restore_pressure_soon();
    fixture.output.lift_pressure();
    bool again = false;
    SECTION("after the grace") {
        again = true;
    }
    SECTION("not if it passes a limit by then") {
        (void)fixture.run.cut_short(Cut::kWallTimeout, {}, RunningRequest::Cpu{0});
    }
    SECTION("not if the kernel has ended: its last output must get through") {
        fixture.output.keep_pressure();
    }
    fixture.output.publish(fixture.stream("1"));
    CHECK_FALSE(fixture.paused);
    (void)fixture.io.run();
    fixture.output.publish(fixture.stream("2"));
    CHECK(fixture.paused == again);
}

TEST_CASE("text of the pipes follows from the request begun last", "[session][output]") {
    OutputFixture fixture;
    CHECK(fixture.output.text_parent() == "{}");
    fixture.output.set_text_parent(std::string(fixture.run.message().header_json()));
    CHECK(fixture.output.text_parent() == fixture.run.message().header_json());
}

}  // namespace
}  // namespace cellkeep::session
