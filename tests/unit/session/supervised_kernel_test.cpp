// SPDX-License-Identifier: Apache-2.0
#include "protocol/internal_request.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/session/kernel_fixture.hpp"

#include <csignal>

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;
using protocol::Channel;
using protocol::Message;
using test::answer;
using test::KernelFixture;
using test::Names;
using test::status_of;

TEST_CASE("a kernel starts, works and rests", "[session][kernel]") {
    KernelFixture fixture;
    CHECK(fixture.kernel.state() == KernelState::kStarting);
    CHECK(fixture.kernel.is_at_work());
    REQUIRE(fixture.kernel.launch().has_value());
    const Message first = fixture.submit();  // before it is ready: it waits
    CHECK(fixture.kernel.waiting() == 1);
    CHECK(fixture.queued_bytes > 0);
    fixture.process().answer_info();
    CHECK(fixture.seen.take() == Names{"idle"});
    CHECK(fixture.kernel.state() == KernelState::kBusy);
    const Message second = fixture.submit();
    REQUIRE(fixture.process().sent.size() == 2);  // one at a time
    fixture.complete(first);
    CHECK(fixture.process().sent.size() == 3);
    CHECK(fixture.kernel.state() == KernelState::kBusy);
    fixture.complete(second);
    CHECK(fixture.kernel.state() == KernelState::kIdle);
    CHECK(fixture.kernel.is_ready());
    CHECK_FALSE(fixture.kernel.is_at_work());
    CHECK(fixture.queued_bytes == 0);
    CHECK(fixture.client->take() == Names{"execute_reply", "execute_reply"});
    CHECK(fixture.seen.take() == Names{"busy", "idle", "busy", "idle"});
    CHECK(fixture.account.used().executions == 2);
}

TEST_CASE("refused calls are looked for where they can matter", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    const Message first = fixture.submit();
    const Message second = fixture.submit();
    fixture.complete(first);
    CHECK(fixture.denials_taken == 1);  // the second begins at once
    fixture.complete(second);
    CHECK(fixture.denials_taken == 1);
    const Message third = fixture.submit();
    fixture.process().say(status_of(third, "busy"));
    fixture.process().say(answer(
        third,
        Channel::kShell,
        "execute_reply",
        {{"status", "error"}, {"ename", "OSError"}, {"evalue", "x"}}));
    fixture.process().say(status_of(third, "idle"));
    CHECK(fixture.denials_taken == 2);
}

TEST_CASE("a death answers everything once, and another process starts", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    const Message first = fixture.submit();
    fixture.submit();
    fixture.process().say(status_of(first, "busy"));
    (void)fixture.seen.take();
    fixture.crash();
    CHECK(fixture.client->take() == Names{"execute_reply KernelDied", "execute_reply KernelDied"});
    CHECK(fixture.seen.take() == Names{"error", "idle", "busy", "idle", "restarting"});
    CHECK(fixture.kernel.state() == KernelState::kRestarting);
    CHECK(fixture.kernel.restarts() == 1);
    const Message third = fixture.submit();  // waits for the fresh one
    fixture.process().answer_info({{"status", "ok"}}, "kernel-2");
    CHECK(fixture.kernel.state() == KernelState::kBusy);
    fixture.complete(third);
    CHECK(fixture.client->take() == Names{"execute_reply"});
}

TEST_CASE(
    "the death of an idle kernel is published on stderr, the death of a spare is not",
    "[session][kernel]") {
    const bool spare = GENERATE(false, true);
    KernelFixture fixture(0, spare);
    fixture.launch_ready();
    fixture.crash();
    CHECK(fixture.seen.take() == (spare ? Names{"dead"} : Names{"stream", "restarting"}));
    CHECK(fixture.reports == (spare ? Names{"left dead: exited(3)"} : Names{}));
}

TEST_CASE("a dead kernel refuses until it is restarted", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    CHECK(fixture.kernel.check_alive().has_value());
    fixture.kernel.on_sandbox_died();
    CHECK(fixture.kernel.state() == KernelState::kDead);
    CHECK(fixture.reports == Names{"left dead: sandbox_died"});
    CHECK(fixture.kernel.check_alive().error().code() == ErrorCode::kConflict);
    CHECK(fixture.kernel.interrupt().error().code() == ErrorCode::kConflict);
    fixture.submit();
    fixture.poll();
    CHECK(fixture.client->take() == Names{"execute_reply KernelDead"});
    std::optional<Status> restarted;
    fixture.wait(fixture.kernel.restart(), restarted);
    CHECK(fixture.kernel.state() == KernelState::kRestarting);
    fixture.process().answer_info();
    fixture.poll();
    REQUIRE(restarted.has_value());
    CHECK(restarted->has_value());
    CHECK(fixture.kernel.check_alive().has_value());
}

TEST_CASE("a restart during a sweep answers what was asked before it", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    const Message running = fixture.submit();
    fixture.submit();
    fixture.process().say(status_of(running, "busy"));
    fixture.exit();
    std::optional<Status> restarted;
    fixture.wait(fixture.kernel.restart(), restarted);
    CHECK(fixture.client->take() == Names{"execute_reply KernelDied"});  // what waited
    const Message later = fixture.submit();                              // waits for the fresh one
    (void)fixture.seen.take();
    bool postponed = false;
    SECTION("of this kernel alone") {}
    SECTION("of the whole sandbox") {
        // Another kernel's sweep begins when this one has ended.
        fixture.postpones = true;
        postponed = true;
    }
    fixture.kernel.on_swept();
    CHECK(fixture.client->take() == Names{"execute_reply KernelDied"});  // what ran
    CHECK(fixture.seen.take() == Names{"idle"});  // asked for: no alarm, no "restarting"
    CHECK(fixture.kernel.state() == KernelState::kRestarting);
    CHECK(fixture.starts.processes.size() == (postponed ? 1 : 2));
    if (postponed) {
        fixture.kernel.launch_or_die();
    }
    fixture.process().answer_info();
    fixture.complete(later);
    CHECK(fixture.client->take() == Names{"execute_reply"});
    fixture.poll();
    REQUIRE(restarted.has_value());
    CHECK(restarted->has_value());
    CHECK(fixture.starts.processes.size() == 2);
}

TEST_CASE("a postponed launch that fails leaves the kernel dead", "[session][kernel]") {
    KernelFixture fixture(1);
    fixture.submit();
    fixture.starts.status = Error(ErrorCode::kUnavailable, "no");
    fixture.kernel.launch_or_die();
    CHECK(fixture.kernel.state() == KernelState::kDead);
    CHECK(fixture.client->take() == Names{"execute_reply KernelDied"});
    CHECK(fixture.reports == Names{"left dead: start_failed"});
    CHECK(fixture.seen.take().empty());  // front ends do not see it
}

TEST_CASE("what the server answers itself does not wait", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    const Message running = fixture.submit();
    fixture.process().say(status_of(running, "busy"));
    (void)fixture.seen.take();
    fixture.ask_control("kernel_info_request");
    fixture.ask_control("usage_request");
    CHECK(fixture.client->take() == Names{"kernel_info_reply", "usage_reply"});
    CHECK(fixture.seen.take() == Names{"busy", "idle", "busy", "busy", "idle", "busy"});
    fixture.ask_control("interrupt_request");
    CHECK(fixture.process().signals == std::vector<int>{SIGINT});
    fixture.ask_control("x_request");
    CHECK(fixture.log == Names{"ignored a control message of unknown type \"x_request\""});
    fixture.ask_control("shutdown_request");
    CHECK(fixture.reports == Names{"end"});
    CHECK(fixture.kernel.is_running());
}

TEST_CASE("a client that asks again while a question is open is asked it", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    const Message running = fixture.submit();
    fixture.process().say(status_of(running, "busy"));
    fixture.process().say(
        answer(running, Channel::kStdin, "input_request", {{"prompt", "?"}, {"password", false}}));
    CHECK(fixture.client->take() == Names{"input_request"});
    CHECK(fixture.kernel.question().has_value());
    // The client vanishes and comes back.
    fixture.kernel.submit_control(
        Message::make(
            Channel::kControl,
            protocol::make_header("cellkeep_replay_request", "another", "user"),
            nlohmann::json::object(),
            {{"msg_ids", {running.header().msg_id}}}),
        fixture.client);
    fixture.poll();
    const Names answers = fixture.client->take();
    REQUIRE(answers.size() == 2);
    CHECK(answers[1] == "input_request");
}

TEST_CASE(
    "a debugger is asked past the queue, and answered for when it dies", "[session][kernel]") {
    KernelFixture fixture;
    REQUIRE(fixture.kernel.launch().has_value());
    fixture.process().answer_info({{"status", "ok"}, {"debugger", true}});
    const Message running = fixture.submit();
    fixture.process().say(status_of(running, "busy"));
    fixture.ask_control("debug_request");
    REQUIRE(fixture.process().sent.size() == 3);
    CHECK(fixture.kernel.is_at_work());
    fixture.crash();
    CHECK(fixture.client->take() == Names{"debug_reply DebugFailed", "execute_reply KernelDied"});
}

TEST_CASE("an execution is interrupted where it is", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    const auto push = [&fixture](const std::string& id) {
        auto execution = std::make_shared<Execution>(
            fixture.io,
            Execution::Order{
                .id = id,
                .session_id = "ses_1",
                .language = "python",
                .code_sha256 = {},
                .reasoning = {}});
        REQUIRE(
            fixture.kernel
                .enqueue(
                    {fixture.request(),
                     nullptr,
                     std::make_shared<TrackedExecution>(TrackedExecution{
                         execution, ExecutionRecorder(id, "ses_1", "", 1000), std::nullopt, {}}),
                     std::chrono::steady_clock::now()})
                .has_value());
        fixture.kernel.dispatch();
        return execution;
    };
    const auto first = push("exe_1");
    const auto second = push("exe_2");
    CHECK(fixture.kernel.interrupt_execution(second).has_value());
    REQUIRE(fixture.results.size() == 1);
    CHECK(fixture.results[0].error->name == "Cancelled");
    CHECK_FALSE(fixture.kernel.interrupt_execution(second).has_value());  // it is not here
    CHECK(fixture.process().signals.empty());
    fixture.process().say(status_of(fixture.process().sent[1], "busy"));
    CHECK(fixture.kernel.interrupt_execution(first).has_value());
    CHECK(fixture.process().signals == std::vector<int>{SIGINT});
}

TEST_CASE("the end of a session answers everything", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    const Message running = fixture.submit();
    fixture.submit();
    fixture.process().say(status_of(running, "busy"));
    (void)fixture.seen.take();
    fixture.kernel.close();
    CHECK(fixture.kernel.interrupt().has_error());
    fixture.kernel.end({Death::Kind::kCulled, 0});
    CHECK(fixture.client->take() == Names{"execute_reply KernelDied", "execute_reply KernelDied"});
    CHECK(fixture.seen.take() == Names{"error", "idle", "busy", "idle", "dead"});
    CHECK(fixture.kernel.state() == KernelState::kDead);
    CHECK(fixture.starts.processes.size() == 1);
    CHECK(fixture.process().gone);
    CHECK(fixture.reports.empty());
}

TEST_CASE("a spare becomes a client's with what is the client's own", "[session][kernel]") {
    KernelFixture fixture(0, true);
    fixture.launch_ready();
    CHECK(fixture.orders.at(0).spare);
    std::optional<Status> adopted;
    fixture.wait(fixture.kernel.adopt({{{"A", "1"}}, "dir"}), adopted);
    CHECK_FALSE(adopted.has_value());
    const Message request = fixture.process().sent.back();
    CHECK(request.header().msg_type == protocol::kAdoptRequest);
    CHECK(request.parse_content().value()["working_directory"] == "/workspace/dir");
    CHECK(fixture.kernel.is_at_work());
    fixture.process().say(answer(request, Channel::kControl, "x", {{"status", "ok"}}));
    fixture.poll();
    REQUIRE(adopted.has_value());
    CHECK(adopted->has_value());
    CHECK_FALSE(fixture.kernel.is_at_work());
    fixture.crash();  // and is restarted from now on, with the same
    REQUIRE(fixture.orders.size() == 2);
    CHECK_FALSE(fixture.orders[1].spare);
    CHECK(fixture.orders[1].own.env.at("A") == "1");
}

TEST_CASE("front ends see the kernel of the session's own language only", "[session][kernel]") {
    KernelFixture fixture(1);
    REQUIRE(fixture.kernel.launch().has_value());
    fixture.process().answer_info();
    const Message running = fixture.submit();
    fixture.complete(running);
    CHECK(fixture.client->take() == Names{"execute_reply"});
    CHECK(fixture.seen.take().empty());
    CHECK(fixture.fanout.journal().dropped() == 0);
}

TEST_CASE("a queue that is full and a budget that is used up refuse", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    SECTION("budget") {
        fixture.limits.executions = 1;
        fixture.complete(fixture.submit());
        (void)fixture.client->take();
        fixture.submit();
        fixture.poll();
        CHECK(fixture.client->take() == Names{"execute_reply BudgetExhausted"});
        fixture.submit("complete_request");  // runs no code
        CHECK(fixture.kernel.is_running());
    }
    SECTION("queue") {
        for (std::size_t i = 0; i < limits::kShellQueueMax + 1; ++i) {
            fixture.submit();
        }
        fixture.poll();
        CHECK(fixture.client->take().empty());
        fixture.submit();
        fixture.poll();
        CHECK(fixture.client->take() == Names{"execute_reply QueueFull"});
    }
}

TEST_CASE("a kernel that floods at rest is killed", "[session][kernel]") {
    KernelFixture fixture;
    fixture.launch_ready();
    const Message chunk = answer(
        fixture.process().sent[0],
        Channel::kIopub,
        "stream",
        {{"name", "stdout"}, {"text", std::string(1U << 20U, 'x')}});
    for (int i = 0; i < 1000 && fixture.process().signals.empty(); ++i) {
        fixture.process().say(chunk);
    }
    CHECK(fixture.process().signals == std::vector<int>{SIGKILL});
    const std::size_t seen = fixture.seen.names.size();
    fixture.process().say(chunk);  // while it is being killed
    CHECK(fixture.seen.names.size() == seen);
    fixture.crash();
    CHECK(fixture.kernel.death()->kind == Death::Kind::kOutputLimit);
}

}  // namespace
}  // namespace cellkeep::session
