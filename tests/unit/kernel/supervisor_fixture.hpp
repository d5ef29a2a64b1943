// SPDX-License-Identifier: Apache-2.0
//
// A ProcessSupervisor whose sandbox is a test's.
#pragma once

#include "kernel-manager/kernel/process/process_supervisor.hpp"
#include "tests/support/fake_interpreter.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session::test {

using Calls = std::vector<std::string>;
using Done = std::shared_ptr<std::optional<Status>>;

inline std::string name_of(KernelEvent event) {
    switch (event) {
        case KernelEvent::kReady:
            return "+ready";
        case KernelEvent::kBusy:
            return "+busy";
        case KernelEvent::kIdle:
            return "+idle";
        case KernelEvent::kDied:
            return "+died";
        case KernelEvent::kRestart:
            return "+restart";
    }
    return "?";
}

inline boost::asio::awaitable<void> note_result(boost::asio::awaitable<Status> wait, Done done) {
    done->emplace(co_await std::move(wait));
}

/// A supervisor with a fake sandbox, and a listener that records its calls.
struct SupervisorFixture {
    explicit SupervisorFixture(
        bool spare = false,
        std::chrono::milliseconds start_timeout = std::chrono::hours(1),
        std::chrono::milliseconds tell_patience = std::chrono::hours(1))
        : supervisor(
              io,
              {.name = "cellkeep-s",
               .start_timeout = start_timeout,
               .first_inside = true,
               .spare = spare,
               .tell_patience = tell_patience,
               .end_patience = std::chrono::milliseconds(0),
               .paused_claim_patience = std::chrono::milliseconds(1)},
              limits,
              sandbox_hooks(),
              listener(),
              [this] { return owner; }) {}

    boost::asio::io_context io;
    SessionLimits limits;
    std::shared_ptr<int> owner = std::make_shared<int>(0);
    FakeStarts starts;
    Status sweep = ok();
    int sweeps = 0;
    bool postpones = false;
    std::uint64_t oom_kills = 0;
    int looks = 0;       // how often was asked whether it is paused
    int paused_for = 0;  // looks
    bool halts = false;
    std::vector<std::function<void(bool)>> halted;
    bool goes_on = false;
    Calls calls;
    std::optional<protocol::Message> running;
    std::function<void(const protocol::Message&)> on_message = [](const protocol::Message&) {};
    ProcessSupervisor supervisor;

    ProcessSupervisor::Sandbox sandbox_hooks() {
        return {
            .start = [this](Interpreter::Events events) { return starts.start(std::move(events)); },
            .begin_sweep =
                [this] {
                    ++sweeps;
                    return sweep;
                },
            .postpones_launch = [this] { return postpones; },
            .goes_on = [this] { return goes_on; },
            .wake = [] {},
            .oom_kills = [this] { return oom_kills; },
            .is_paused = [this] { return looks++ < paused_for; },
            .halt =
                [this](std::function<void(bool)> done) {
                    if (halts) {
                        halted.push_back(std::move(done));
                    }
                    return halts;
                }};
    }

    ProcessSupervisor::Listener listener() {
        return {
            .change = [this](KernelEvent event) { calls.push_back(name_of(event)); },
            .publish =
                [this](const protocol::Message& message) {
                    calls.push_back(message.parse_content().value().value("execution_state", "?"));
                },
            .on_message =
                [this](const protocol::Message& message) {
                    if (!supervisor.take(message)) {
                        calls.push_back("message " + message.header().msg_type);
                        on_message(message);
                    }
                },
            .on_text = [this](OutputStream, std::string_view text) { calls.emplace_back(text); },
            .awaits_busy = [] { return false; },
            .on_started = [this] { calls.emplace_back("started"); },
            .on_ready = [this] { calls.emplace_back("ready"); },
            .running = [this]() -> const protocol::Message* {
                return running ? &*running : nullptr;
            },
            .fail_running =
                [this](const Death& death, const std::string&) {
                    calls.push_back("fail running: " + to_string(death));
                    running.reset();
                },
            .fail_waiting =
                [this](const Death& death, const std::string&) {
                    calls.push_back("fail waiting: " + to_string(death));
                },
            .on_lost =
                [this](const ProcessSupervisor::Loss& loss) {
                    calls.push_back(
                        "lost: " + to_string(loss.death) + (loss.informed ? ", informed" : "") +
                        (loss.restarts ? ", restarts" : ""));
                    return std::exchange(running, std::nullopt);
                },
            .on_left_dead =
                [this](const Death& death) { calls.push_back("left dead: " + to_string(death)); }};
    }

    FakeProcess& process() const { return starts.last(); }
    void launch_ready() {
        REQUIRE(supervisor.launch().has_value());
        process().answer_info();
        REQUIRE(supervisor.takes_requests());
        calls.clear();
    }
    void exit(int status = 3) { supervisor.on_exit(starts.exit(status), Cut::kNone); }
    void crash() {
        exit();
        supervisor.on_swept();
    }
    Calls take_calls() { return std::exchange(calls, {}); }
    /// Runs the loop until the condition holds.
    template <typename Condition>
    void until(Condition condition) {
        while (!condition()) {
            io.restart();
            REQUIRE(io.run_one() == 1);
        }
    }
    void poll() {
        io.restart();
        (void)io.poll();
    }
    /// The result of a wait that ends without a timer.
    Done spawn(boost::asio::awaitable<Status> wait) {
        auto done = std::make_shared<std::optional<Status>>();
        boost::asio::co_spawn(io, note_result(std::move(wait), done), boost::asio::detached);
        return done;
    }
};

inline ErrorCode code_of_wait(const std::optional<Status>& done) {
    REQUIRE(done.has_value());
    REQUIRE(done->has_error());
    return done->error().code();
}

inline bool is_killed(const FakeProcess& process) {
    return process.signals == std::vector<int>{SIGKILL};
}

}  // namespace cellkeep::session::test
