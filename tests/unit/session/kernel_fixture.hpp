// SPDX-License-Identifier: Apache-2.0
//
// A SupervisedKernel whose sandbox is a test's; its parts are the real ones.
#pragma once

#include "kernel-manager/session/supervised_kernel.hpp"
#include "tests/support/fake_interpreter.hpp"
#include "tests/support/temporary_workspace.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session::test {

using Names = std::vector<std::string>;

/// A client that writes down the types of its answers, with the name of an error.
class KernelClient : public ReplySink {
 public:
    void deliver(const protocol::Message& message) override {
        const auto content = message.parse_content().value();
        std::string name = message.header().msg_type;
        if (content.contains("ename")) {
            name += " " + content["ename"].get<std::string>();
        }
        answers.push_back(std::move(name));
        last = content;
    }
    Names take() { return std::exchange(answers, {}); }
    Names answers;
    nlohmann::json last;
};

/// What front ends see: types; of a status its state.
class SeenOutput : public OutputObserver {
 public:
    void on_output(const OutputEntry& entry) override {
        const auto content = entry.message.parse_content().value();
        names.push_back(content.value("execution_state", entry.message.header().msg_type));
    }
    Names take() { return std::exchange(names, {}); }
    Names names;
};

struct KernelFixture {
    explicit KernelFixture(sandbox::WorkerGroup group = 0, bool spare = false)
        : kernel(
              io,
              {.session_id = "ses_1",
               .spec = spec(),
               .group = group,
               .start_timeout = std::chrono::hours(1),
               .own = {},
               .spare = spare},
              sandbox_hooks(),
              {.limits = limits, .account = account, .usage = usage, .queued_bytes = queued_bytes},
              {.workspace = workspace,
               .saved_texts = saved_texts,
               .work_thread = thread,
               .inputs_thread = thread,
               .inputs = nullptr},
              {.activity = activity, .front_ends = fanout},
              owner_hooks(),
              {.line = [this](const std::string& line) { log.push_back(line); },
               .limit = [](const std::string&, const LimitHit&) {}},
              [this] { return session; }) {
        fanout.subscribe(&seen);
    }

    boost::asio::io_context io;
    SessionLimits limits;
    SessionAccount account{0};
    UsageMeter usage{
        {.counters = []() -> Result<sandbox::Usage> { return sandbox::Usage{}; },
         .cpu_counter = []() -> Result<sandbox::Usage> { return sandbox::Usage{}; },
         .cpu_time = [](sandbox::WorkerGroup) -> Result<std::chrono::microseconds> {
             return Error(ErrorCode::kUnavailable, "none");
         }},
        account,
        limits};
    std::size_t queued_bytes = 0;
    cellkeep::test::TemporaryWorkspace files;
    sandbox::Workspace workspace = files.workspace();
    SavedTexts saved_texts;
    std::shared_ptr<WorkThread> thread = std::make_shared<WorkThread>();
    Activity activity{std::chrono::steady_clock::now()};
    OutputFanout fanout{1000, 1U << 20U};
    SeenOutput seen;
    FakeStarts starts;
    std::shared_ptr<int> session = std::make_shared<int>(0);
    std::shared_ptr<KernelClient> client = std::make_shared<KernelClient>();
    std::vector<KernelStarter::Order> orders;
    std::vector<pid_t> taken_over;
    bool postpones = false;
    bool postpones_requests = false;
    bool halts = false;
    std::function<void(bool)> halted;
    int runs = 0;
    std::optional<RestoredState> revival;  // of the next death
    std::vector<std::string> revived;      // what the session was asked to go on from
    int denials_taken = 0;
    Names reports;  // the calls that the session got
    Names log;
    std::vector<ExecutionResult> results;
    SupervisedKernel kernel;

    static KernelSpec spec() {
        KernelSpec one;
        one.language = "python";
        return one;
    }
    SupervisedKernel::Sandbox sandbox_hooks() {
        return {
            .start =
                [this](const KernelStarter::Order& order, Interpreter::Events events) {
                    orders.push_back(order);
                    return starts.start(std::move(events));
                },
            .take_over =
                [this](WokenProcess woken, Interpreter::Events events) {
                    taken_over.push_back(woken.forked);
                    return starts.start(std::move(events));
                },
            .find_revival = [this] { return revival; },
            .revive =
                [this](const RestoredState& restored) { revived.push_back(restored.checkpoint); },
            .prepare_directory = [](const std::string& wanted) { return "/workspace/" + wanted; },
            .begin_sweep = [] { return Status(ok()); },
            .postpones_launch = [this] { return postpones; },
            .take_denials = [this] { ++denials_taken; },
            .restart_memory_peak = [] { return false; },
            .memory_peak = [] { return std::optional<std::uint64_t>(); },
            .wake = [] {},
            .halt =
                [this](std::function<void(bool)> done) {
                    halted = std::move(done);
                    return halts;
                }};
    }
    SupervisedKernel::Owner owner_hooks() {
        return {
            .complete = [this](
                            TrackedExecution&,
                            ExecutionResult result) { results.push_back(std::move(result)); },
            .on_left_dead =
                [this](const Death& death) { reports.push_back("left dead: " + to_string(death)); },
            .note_use = [this] { reports.emplace_back("used"); },
            .review_life = [] {},
            .postpones_requests = [this] { return postpones_requests; },
            .note_run = [this](std::chrono::steady_clock::duration) { ++runs; },
            .end_session = [this] { reports.emplace_back("end"); },
            .make_usage =
                [] {
                    return nlohmann::json{{"status", "ok"}};
                }};
    }

    FakeProcess& process() const { return starts.last(); }
    void launch_ready() {
        REQUIRE(kernel.launch().has_value());
        process().answer_info();
        REQUIRE(kernel.state() == KernelState::kIdle);
        (void)seen.take();
        reports.clear();
    }
    protocol::Message request(
        const std::string& type = "execute_request",
        protocol::Channel channel = protocol::Channel::kShell) const {
        return protocol::Message::make(
            channel,
            protocol::make_header(type, "client", "user"),
            nlohmann::json::object(),
            {{"code", "1"}});
    }
    protocol::Message submit(const std::string& type = "execute_request") {
        protocol::Message one = request(type);
        kernel.submit_shell(one, client);
        return one;
    }
    void ask_control(const std::string& type) {
        kernel.submit_control(request(type, protocol::Channel::kControl), client);
        poll();
    }
    void complete(const protocol::Message& one) const {
        process().say(status_of(one, "busy"));
        process().say(answer(one, protocol::Channel::kShell, "execute_reply", {{"status", "ok"}}));
        process().say(status_of(one, "idle"));
    }
    void exit() { kernel.on_worker_exit(starts.exit(3)); }
    void crash() {
        exit();
        kernel.on_swept();
    }
    void poll() {
        io.restart();
        (void)io.poll();
    }
    /// `done` must live longer than the wait.
    void wait(boost::asio::awaitable<Status> wait, std::optional<Status>& done) {
        boost::asio::co_spawn(io, keep(std::move(wait), done), boost::asio::detached);
        poll();
    }
    static boost::asio::awaitable<void> keep(
        boost::asio::awaitable<Status> wait, std::optional<Status>& done) {
        done.emplace(co_await std::move(wait));
    }
};

}  // namespace cellkeep::session::test
