// SPDX-License-Identifier: Apache-2.0
#include "protocol/limits.hpp"
#include "tests/support/input_files.hpp"
#include "tests/unit/kernel/run_fixture.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;
using protocol::Channel;
using protocol::Message;
using test::answer;
using test::by_bytes;
using test::Names;
using test::RunClient;
using test::RunFixture;

TEST_CASE("a request is sent, replied to and over with its idle", "[session][run]") {
    RunFixture fixture;
    const Message request = fixture.begin();
    CHECK(fixture.run.is_running());
    REQUIRE(fixture.kernel().sent.size() == 1);
    CHECK(fixture.kernel().sent[0].header().msg_id == request.header().msg_id);
    fixture.say_busy(request);
    fixture.reply(request);
    fixture.reply(request);  // once is enough
    CHECK(fixture.client->types() == Names{"execute_reply"});
    CHECK(fixture.over.empty());
    fixture.kernel().piped = "what C code printed";
    fixture.say_idle(request);
    CHECK(fixture.take_published() == Names{"busy", "stream", "idle"});  // in that order
    CHECK(fixture.over == Names{"execute_request"});
    CHECK(fixture.denials_taken == 1);
    CHECK_FALSE(fixture.run.is_running());
    CHECK(fixture.failed.empty());
    fixture.say_idle(request);  // late, of nothing that runs
    CHECK(fixture.over.size() == 1);
}

TEST_CASE("a request failed when its error was shown, or else with its reply", "[session][run]") {
    RunFixture fixture;
    const Message first = fixture.begin();
    fixture.say_busy(first);
    const auto before = std::chrono::steady_clock::now();
    fixture.show_error(first);
    const auto shown = std::chrono::steady_clock::now();
    fixture.reply(first, "error");
    CHECK((before <= fixture.failed_at && fixture.failed_at <= shown));
    fixture.say_idle(first);
    const Message second = fixture.begin();
    fixture.say_busy(second);
    const auto replied = std::chrono::steady_clock::now();
    fixture.reply(second, "error");
    CHECK(replied <= fixture.failed_at);
    fixture.say_idle(second);
}

TEST_CASE("a failed request and one without a reply", "[session][run]") {
    RunFixture fixture;
    Message request = fixture.begin();
    fixture.say_busy(request);
    fixture.reply(request, "error");
    CHECK(fixture.failed == Names{"client"});
    fixture.say_idle(request);
    request = fixture.begin("inspect_request");
    fixture.say_busy(request);
    fixture.say_idle(request);
    CHECK(fixture.client->types() == Names{"execute_reply", "inspect_reply"});
    CHECK(fixture.client->delivered[1].parse_content().value()["ename"] == "NotImplementedError");
}

TEST_CASE("an execution is answered with what it said", "[session][run]") {
    RunFixture fixture;
    const Message request = fixture.begin_execution({by_bytes("in.txt", "1")});
    CHECK(std::filesystem::exists(fixture.target.path("in.txt")));
    REQUIRE(fixture.kernel().sent.size() == 1);
    fixture.say_busy(request);
    fixture.kernel().say(
        answer(request, Channel::kIopub, "stream", {{"name", "stdout"}, {"text", "hello"}}));
    fixture.reply(request);
    fixture.say_idle(request);
    REQUIRE(fixture.results.size() == 1);
    CHECK(fixture.results[0].status == ExecutionStatus::kOk);
    CHECK(fixture.results[0].stdout_text == "hello");
    CHECK(fixture.results[0].metrics.memory_peak_bytes == 4096);
    CHECK(fixture.results[0].artifacts.empty());  // what came with it is not its own
}

TEST_CASE("input is asked of the client whose cell it is", "[session][run]") {
    RunFixture fixture;
    const Message request = fixture.begin();
    fixture.say_busy(request);
    fixture.kernel().sent.clear();
    fixture.run.take_input_reply(fixture.input_reply("client"));  // to no question
    CHECK(fixture.kernel().sent.empty());
    fixture.ask_input(request);
    fixture.ask_input(request);  // one at a time
    CHECK(fixture.client->types() == Names{"input_request"});
    CHECK(fixture.run.question().has_value());
    fixture.run.take_input_reply(fixture.input_reply("another"));
    CHECK(fixture.kernel().sent.empty());
    fixture.run.take_input_reply(fixture.input_reply("client"));
    CHECK(fixture.kernel().sent.size() == 1);
    CHECK_FALSE(fixture.run.question().has_value());
}

TEST_CASE("a question that is too long is not passed on", "[session][run]") {
    RunFixture fixture;
    const Message request = fixture.begin();
    fixture.say_busy(request);
    fixture.kernel().say(answer(
        request,
        Channel::kStdin,
        "input_request",
        {{"prompt", std::string(limits::kInputRequestBytesMax, 'x')}}));
    CHECK(fixture.client->delivered.empty());
    CHECK_FALSE(fixture.run.question().has_value());
}

TEST_CASE(
    "a client that vanishes during input leaves a question that others can end", "[session][run]") {
    RunFixture fixture;
    const Message request = fixture.begin();
    fixture.say_busy(request);
    fixture.ask_input(request);
    const std::weak_ptr<RunClient> vanished = fixture.client;
    fixture.client.reset();
    CHECK_FALSE(vanished.expired());  // its answers still have where to go
    const auto open = fixture.run.question();
    REQUIRE(open.has_value());
    fixture.kernel().sent.clear();
    SECTION("another client answers the question that it was given since") {
        fixture.run.take_input_reply(
            answer(*open, Channel::kStdin, "input_reply", {{"value", "x"}}, "another"));
        CHECK(fixture.kernel().sent.size() == 1);
        fixture.say_idle(request);
    }
    SECTION("it is interrupted") {
        CHECK(fixture.run.interrupt().has_value());
        CHECK(fixture.kernel().signals == std::vector<int>{SIGINT});
        fixture.reply(request, "error");
        fixture.say_idle(request);
    }
    SECTION("the kernel dies") {
        fixture.die();
    }
    CHECK_FALSE(fixture.run.question().has_value());
    CHECK_FALSE(fixture.run.is_running());
    CHECK(vanished.expired());
    // A late answer belongs to no question.
    const std::size_t sent = fixture.kernel().sent.size();
    fixture.run.take_input_reply(fixture.input_reply("client"));
    CHECK(fixture.kernel().sent.size() == sent);
}

TEST_CASE("an execution's input comes from what was given with it", "[session][run]") {
    RunFixture fixture;
    const Message request = fixture.begin_execution();
    fixture.say_busy(request);
    fixture.ask_input(request);
    REQUIRE(fixture.kernel().sent.size() == 2);
    CHECK(fixture.kernel().sent[1].parse_content().value()["value"] == "one line");
    CHECK_FALSE(fixture.run.question().has_value());
}

TEST_CASE("a flood is dropped, but not its end", "[session][run]") {
    RunFixture fixture;
    const Message request = fixture.begin();
    fixture.say_busy(request);
    fixture.run.cut(Cut::kOutputLimit);
    (void)fixture.take_published();
    const Message stream =
        answer(request, Channel::kIopub, "stream", {{"name", "stdout"}, {"text", "x"}});
    fixture.kernel().say(stream);
    fixture.kernel().events.on_text(OutputStream::kStdout, "x");
    CHECK(fixture.take_published().empty());
    fixture.kernel().say(answer(request, Channel::kIopub, "error", {{"ename", "x"}}));
    fixture.say_idle(request);
    CHECK(fixture.take_published() == Names{"error", "idle"});
    fixture.kernel().say(stream);
    CHECK(fixture.take_published() == Names{"stream"});
}

TEST_CASE("busy is repeated while a request runs", "[session][run]") {
    RunFixture fixture;
    fixture.run.repeat_busy();
    const Message request = fixture.begin();
    fixture.run.repeat_busy();  // it has not begun
    CHECK(fixture.take_published().empty());
    fixture.say_busy(request);
    (void)fixture.take_published();
    fixture.run.repeat_busy();
    CHECK(fixture.take_published() == Names{"busy"});
}

TEST_CASE("busy is repeated when a debugger's request has ended, once", "[session][run]") {
    RunFixture fixture;
    const Message request = fixture.begin();
    fixture.say_busy(request);
    (void)fixture.take_published();
    const Message debug = Message::make(
        Channel::kControl,
        protocol::make_header("debug_request", "client", "user"),
        nlohmann::json::object(),
        nlohmann::json::object());
    fixture.say_busy(debug);
    CHECK(fixture.take_published() == Names{"busy"});
    fixture.say_idle(debug);
    CHECK(fixture.take_published() == Names{"idle", "busy"});
    fixture.say_idle(request);
    fixture.say_idle(debug);
    CHECK(fixture.take_published() == Names{"idle", "idle"});  // nothing is at work any more
}

}  // namespace
}  // namespace cellkeep::session
