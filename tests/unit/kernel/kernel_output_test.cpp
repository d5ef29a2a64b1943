// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/kernel_output.hpp"

#include "protocol/limits.hpp"
#include "tests/support/fake_interpreter.hpp"
#include "tests/support/temporary_workspace.hpp"
#include "tests/support/tracked_execution.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {
namespace {

using protocol::Channel;
using protocol::Message;
using test::answer;
using test::status_of;
using Texts = std::vector<std::string>;

/// A front end that the test can stop from taking more. Sees a stream's text, or else the message's
/// type.
class StoppedFront : public OutputObserver {
 public:
    void on_output(const OutputEntry& entry) override {
        const std::string& type = entry.message.header().msg_type;
        seen.push_back(entry.message.parse_content().value().value("text", type));
        if (const auto call = std::exchange(on_next, nullptr)) {
            call();
        }
    }
    bool congested() const override { return full; }
    Texts seen;
    bool full = false;
    std::function<void()> on_next;  // called once
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

    Message stream(const std::string& text, const std::string& name = "stdout") const {
        return answer(run.message(), Channel::kIopub, "stream", {{"name", name}, {"text", text}});
    }
    void print(const std::string& text) { output.publish(stream(text)); }
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
    fixture.output.flush();
    CHECK(fixture.front.seen == Texts{"before text", "other", " after"});
    CHECK(fixture.notes == std::vector<std::string>{"", "execute_request", "execute_request", ""});
    CHECK(fixture.recorded() == "text");
    CHECK(fixture.execution->execution->events().size() == 1);
}

TEST_CASE("a kernel that front ends do not see is recorded, and never waits", "[session][output]") {
    OutputFixture fixture(false);
    fixture.front.full = true;
    fixture.output.begin_run(fixture.run);
    fixture.output.publish(fixture.stream("text"));
    fixture.output.flush();
    CHECK(fixture.front.seen.empty());
    CHECK(fixture.io.run() == 0);  // nothing waits
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

TEST_CASE("lines that follow each other are one message when their time is over", "[output]") {
    OutputFixture fixture;
    const auto begin = std::chrono::steady_clock::now();
    fixture.print("0\n");
    fixture.print("1\n");
    CHECK(fixture.notes.size() == 2);  // activity is noted when it happens
    (void)fixture.io.poll();
    (void)fixture.io.run();  // until nothing waits
    CHECK(std::chrono::steady_clock::now() - begin >= kStreamJoinTimeMax);
    CHECK(fixture.front.seen == Texts{"0\n1\n"});
    CHECK(fixture.fanout.journal().last_sequence() == 1);
    fixture.io.restart();
    fixture.print("2\n");  // has a time of its own
    CHECK(fixture.front.seen.size() == 1);
    (void)fixture.io.run();
    CHECK(fixture.front.seen == Texts{"0\n1\n", "2\n"});
}

TEST_CASE("more text does not put off the end of the wait", "[session][output]") {
    OutputFixture fixture;
    std::string printed;
    while (fixture.front.seen.empty()) {
        fixture.print("x");
        printed += "x";
        (void)fixture.io.poll();
    }
    CHECK(fixture.front.seen == Texts{printed});
    CHECK(printed.size() < limits::kStreamMessageBytesMax);  // its time was over, not its room
}

TEST_CASE("an agent gets each line at once while front ends wait for more", "[session][output]") {
    OutputFixture fixture;
    fixture.output.begin_run(fixture.run);
    fixture.print("0\n");
    CHECK(fixture.execution->execution->events().size() == 1);
    fixture.print("1\n");
    CHECK(fixture.execution->execution->events().size() == 2);
    CHECK(fixture.front.seen.empty());
    CHECK(fixture.recorded() == "0\n1\n");
}

TEST_CASE("what is no further text of the stream comes behind it, at once", "[session][output]") {
    OutputFixture fixture;
    fixture.print("0\n");
    fixture.print("1\n");
    std::string other;
    SECTION("a status") {
        other = "status";
        fixture.output.publish(status_of(fixture.run.message(), "idle"));
    }
    SECTION("a display, an error, clear_output, a comm message") {
        other = GENERATE("display_data", "execute_result", "error", "clear_output", "comm_msg");
        fixture.output.publish(
            answer(fixture.run.message(), Channel::kIopub, other, nlohmann::json::object()));
    }
    SECTION("stream text of another form") {
        other = "x";
        fixture.output.publish(answer(
            fixture.run.message(),
            Channel::kIopub,
            "stream",
            {{"name", "stdout"}, {"text", "x"}, {"more", 1}}));
    }
    CHECK(fixture.front.seen == Texts{"0\n1\n", other});
    CHECK(fixture.io.poll() <= 1);  // at most the alarm that was cancelled
    CHECK(fixture.front.seen.size() == 2);
}

TEST_CASE("text of another stream, request or process is not joined", "[session][output]") {
    OutputFixture fixture;
    fixture.print("a");
    fixture.print("a");
    const nlohmann::json b{{"name", "stdout"}, {"text", "b"}};
    SECTION("stream") {
        fixture.output.publish(fixture.stream("b", "stderr"));
    }
    SECTION("request") {
        fixture.output.publish(answer(fixture.stream("x"), Channel::kIopub, "stream", b));
    }
    SECTION("process") {
        fixture.output.publish(
            answer(fixture.run.message(), Channel::kIopub, "stream", b, "kernel-2"));
    }
    CHECK(fixture.front.seen == Texts{"aa"});
    fixture.print("c");
    CHECK(fixture.front.seen == Texts{"aa", "b"});
    (void)fixture.io.run();
    CHECK(fixture.front.seen == Texts{"aa", "b", "c"});
}

TEST_CASE("limits::kStreamMessageBytesMax of text are one message, not a byte more", "[output]") {
    OutputFixture fixture;
    const std::string half(limits::kStreamMessageBytesMax / 2, 'x');
    fixture.print(half);
    CHECK(fixture.front.seen.empty());
    SECTION("as much as fits does not wait for more") {
        fixture.print(half);
        CHECK(fixture.front.seen == Texts{half + half});
    }
    SECTION("a byte more begins a new message") {
        fixture.print(half + "x");
        CHECK(fixture.front.seen == Texts{half});
        fixture.output.flush();
        CHECK(fixture.front.seen == Texts{half, half + "x"});
    }
    SECTION("a message that fills one alone does not wait") {
        const std::string whole = half + half;
        fixture.print(whole);
        CHECK(fixture.front.seen == Texts{half, whole});
    }
    const Texts seen = fixture.front.seen;
    (void)fixture.io.run();
    CHECK(fixture.front.seen == seen);  // nothing was left
}

TEST_CASE("a flush shows what waits, once", "[session][output]") {
    OutputFixture fixture;
    fixture.output.flush();
    CHECK(fixture.front.seen.empty());
    fixture.print("0\n");
    fixture.output.flush();
    fixture.output.flush();
    CHECK(fixture.front.seen == Texts{"0\n"});
    (void)fixture.io.run();
    CHECK(fixture.front.seen == Texts{"0\n"});
}

TEST_CASE("a front end that is full gets text at once, and the kernel waits", "[session][output]") {
    OutputFixture fixture;
    fixture.front.full = true;
    fixture.print("0\n");
    CHECK(fixture.front.seen == Texts{"0\n"});
    CHECK(fixture.paused);
    fixture.paused = false;
    fixture.front.full = false;
    fixture.print("1\n");
    CHECK_FALSE(fixture.paused);
    fixture.front.full = true;  // by the time that the wait ends
    (void)fixture.io.run();
    CHECK(fixture.front.seen == Texts{"0\n", "1\n"});
    CHECK(fixture.paused);
}

TEST_CASE("what a front end causes while it sees text keeps its place", "[session][output]") {
    OutputFixture fixture;
    fixture.print("0\n");
    fixture.front.on_next = [&] { fixture.output.publish(fixture.stream("E", "stderr")); };
    fixture.output.publish(fixture.stream("err", "stderr"));
    fixture.front.on_next = [&] { fixture.print("1\n"); };
    fixture.output.publish(fixture.stream("err", "stderr"));
    fixture.print("2\n");
    fixture.output.flush();
    CHECK(fixture.front.seen == Texts{"0\n", "Eerrerr", "1\n2\n"});
}

TEST_CASE("text that waits for an owner that is going is left out", "[session][output]") {
    OutputFixture fixture;
    fixture.print("0\n");
    fixture.owner.reset();
    (void)fixture.io.run();
    CHECK(fixture.front.seen.empty());
}

TEST_CASE("text of the pipes follows from the request begun last", "[session][output]") {
    OutputFixture fixture;
    CHECK(fixture.output.text_parent() == "{}");
    fixture.output.set_text_parent(std::string(fixture.run.message().header_json()));
    CHECK(fixture.output.text_parent() == fixture.run.message().header_json());
}

}  // namespace
}  // namespace cellkeep::session
