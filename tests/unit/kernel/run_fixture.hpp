// SPDX-License-Identifier: Apache-2.0
//
// A CurrentRun whose process is a test's; the parts around it are real.
#pragma once

#include "kernel-manager/kernel/current_run.hpp"
#include "tests/support/fake_interpreter.hpp"
#include "tests/support/temporary_workspace.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::session::test {

using Names = std::vector<std::string>;

class RunClient : public ReplySink {
 public:
    void deliver(const protocol::Message& message) override { delivered.push_back(message); }
    Names types() const {
        Names names;
        for (const protocol::Message& message : delivered) {
            names.push_back(message.header().msg_type);
        }
        return names;
    }
    std::vector<protocol::Message> delivered;
};

/// What front ends see: a stream's text; of a status its state; else the type.
class SeenText : public OutputObserver {
 public:
    void on_output(const OutputEntry& entry) override {
        const auto content = entry.message.parse_content().value();
        const std::string& type = entry.message.header().msg_type;
        seen.push_back(content.value(type == "stream" ? "text" : "execution_state", type));
    }
    Names take() { return std::exchange(seen, {}); }
    Names seen;
};

/// A run whose process is a test's; everything else is real.
struct RunFixture {
    RunFixture() {
        fanout.subscribe(&front);
        REQUIRE(process.launch().has_value());
        kernel().answer_info();
        published.clear();
        (void)front.take();
        kernel().sent.clear();
    }

    boost::asio::io_context io;
    SessionLimits limits;
    SessionAccount account{0};
    std::shared_ptr<int> owner = std::make_shared<int>(0);
    cellkeep::test::TemporaryWorkspace source;
    cellkeep::test::TemporaryWorkspace target;
    sandbox::Workspace workspace = target.workspace();
    SavedTexts saved_texts;
    std::shared_ptr<WorkThread> thread = std::make_shared<WorkThread>();
    FakeStarts starts;
    std::shared_ptr<RunClient> client = std::make_shared<RunClient>();
    Names published;  // types; of a status its state
    OutputFanout fanout{1000, 1U << 20U};
    SeenText front;
    std::vector<LentTool> lent;            // to the executions that begin
    bool passes = false;                   // ExecutionRequest::passes, of those
    std::shared_ptr<Execution> execution;  // the last that began
    std::vector<ExecutionResult> results;
    Names over;
    Names failed;
    std::chrono::steady_clock::time_point failed_at;
    std::vector<LimitReason> logged;
    int denials_taken = 0;

    KeepAlive keep = [this] { return owner; };
    ProcessSupervisor process{
        io,
        {.name = "cellkeep-s", .start_timeout = std::chrono::hours(1), .first_inside = true},
        limits,
        {.start = [this](Interpreter::Events events) { return starts.start(std::move(events)); },
         .begin_sweep = [] { return Status(ok()); },
         .postpones_launch = [] { return false; },
         .goes_on = [] { return false; },
         .wake = [] {},
         .oom_kills = [] { return std::uint64_t{0}; }},
        listener(),
        keep};
    KernelOutput output{
        io,
        &fanout,
        workspace,
        {.note =
             [this](const protocol::Message& message, const protocol::Message*) {
                 const std::string& type = message.header().msg_type;
                 const auto content = message.parse_content().value();
                 published.push_back(content.value("execution_state", type));
             },
         .pause_reading = [] {},
         .resume_reading = [] {}},
        keep};
    RunWatch watch{
        io,
        limits,
        account,
        {.session = [] { return sandbox::Usage{}; },
         .at_begin = [] { return sandbox::Usage{}; },
         .session_cpu = [] { return std::chrono::microseconds{0}; },
         .own_cpu = [] { return std::nullopt; }},
        {.cut = [this](Cut cut) { run.cut(cut); },
         .kill = [this](const Death& why) { process.kill(why); }},
        keep};
    ExecutionFiles files{
        io,
        {.workspace = workspace,
         .saved_texts = saved_texts,
         .work_thread = thread,
         .inputs_thread = thread,
         .inputs = InputsDirectory::open(source.path(".")).value()},
        account,
        {.complete = [this](
                         TrackedExecution&,
                         ExecutionResult result) { results.push_back(std::move(result)); },
         .on_free = [] {}},
        keep};
    CurrentRun run{
        {.process = process, .output = output, .watch = watch, .files = files},
        limits,
        {.complete = [this](
                         TrackedExecution&,
                         ExecutionResult result) { results.push_back(std::move(result)); },
         .on_failed =
             [this](const protocol::Message& request, std::chrono::steady_clock::time_point at) {
                 failed_at = at;
                 failed.push_back(request.header().session);
             },
         .on_over = [this](const std::string& type) { over.push_back(type); },
         .change = [](KernelEvent) {},
         .wake = [] {},
         .take_denials = [this] { ++denials_taken; },
         .restart_memory_peak = [] { return true; },
         .memory_peak = [] { return std::optional<std::uint64_t>(4096); },
         .log_limit =
             [this](const std::string&, const LimitHit& hit) { logged.push_back(hit.reason); },
         .note_restored = [](ExecutionResult&) {}},
        keep};

    ProcessSupervisor::Listener listener() {
        return {
            .change = [](KernelEvent) {},
            .publish = [this](protocol::Message message) { output.publish(std::move(message)); },
            .on_message =
                [this](protocol::Message message) {
                    if (process.take(message)) {
                        return;
                    }
                    if (message.channel() == protocol::Channel::kShell) {
                        run.on_reply(message);
                    } else if (message.channel() == protocol::Channel::kStdin) {
                        run.on_question(message);
                    } else {
                        run.on_iopub(std::move(message));
                    }
                },
            .on_text =
                [this](OutputStream stream, std::string_view text) { run.on_text(stream, text); },
            .awaits_busy = [this] { return run.awaits_busy(); },
            .on_started = [] {},
            .on_ready = [] {},
            .running = [this] { return run.message(); },
            .fail_running = [this](
                                const Death& death,
                                const std::string& text) { (void)run.fail(death, text); },
            .fail_waiting = [](const Death&, const std::string&) {},
            .on_lost =
                [this](const ProcessSupervisor::Loss& loss) {
                    run.on_kernel_lost();
                    return run.fail(loss.death, loss.text);
                },
            .on_left_dead = [](const Death&) {}};
    }

    FakeProcess& kernel() const { return starts.last(); }
    /// A Jupyter client's request.
    protocol::Message begin(const std::string& type = "execute_request") {
        protocol::Message request = protocol::Message::make(
            protocol::Channel::kShell,
            protocol::make_header(type, "client", "user"),
            nlohmann::json::object(),
            {{"code", "1"}});
        run.begin({request, client, nullptr, std::chrono::steady_clock::now()});
        return request;
    }
    /// An agent's execution.
    protocol::Message begin_execution(
        std::vector<InputFile> list = {},
        std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
        protocol::Message request = protocol::Message::make(
            protocol::Channel::kShell,
            protocol::make_header("execute_request", "agent", "user"),
            nlohmann::json::object(),
            {{"code", "1"}});
        execution = std::make_shared<Execution>(
            io,
            Execution::Order{
                .id = "exe_1",
                .session_id = "s",
                .language = "python",
                .code_sha256 = {},
                .reasoning = {},
                .tools = lent,
                .operator_access = {},
                .passes = passes});
        run.begin(
            {request,
             nullptr,
             std::make_shared<TrackedExecution>(TrackedExecution{
                 execution,
                 ExecutionRecorder("exe_1", "s", "one line\n", 1000),
                 timeout,
                 std::move(list)}),
             std::chrono::steady_clock::now()});
        return request;
    }
    void say_busy(const protocol::Message& request) const {
        kernel().say(status_of(request, "busy"));
    }
    void say_idle(const protocol::Message& request) const {
        kernel().say(status_of(request, "idle"));
    }
    void print(
        const protocol::Message& request,
        const std::string& text,
        const std::string& name = "stdout") const {
        kernel().say(
            answer(request, protocol::Channel::kIopub, "stream", {{"name", name}, {"text", text}}));
    }
    void reply(const protocol::Message& request, const std::string& status = "ok") const {
        kernel().say(
            answer(request, protocol::Channel::kShell, "execute_reply", {{"status", status}}));
    }
    void show_error(const protocol::Message& request) const {
        kernel().say(answer(
            request,
            protocol::Channel::kIopub,
            "error",
            {{"ename", "E"}, {"evalue", "e"}, {"traceback", nlohmann::json::array()}}));
    }
    void ask_input(const protocol::Message& request) const {
        kernel().say(answer(
            request,
            protocol::Channel::kStdin,
            "input_request",
            {{"prompt", "?"}, {"password", false}}));
    }
    protocol::Message input_reply(const std::string& session) const {
        return protocol::Message::make(
            protocol::Channel::kStdin,
            protocol::make_header("input_reply", session, "user"),
            nlohmann::json::object(),
            {{"value", "x"}});
    }
    void die() {
        run.on_kernel_exit();
        process.on_exit(starts.exit(3), run.cut());
        process.on_swept();
    }
    Names take_published() { return std::exchange(published, {}); }
    void run_loop() {
        io.restart();
        (void)io.run_for(std::chrono::seconds(0));
    }
    template <typename Condition>
    void until(Condition condition) {
        while (!condition()) {
            io.restart();
            REQUIRE(io.run_one() == 1);
        }
    }
};

}  // namespace cellkeep::session::test
