// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/sandbox_watch.hpp"

#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {
namespace {

using EventKind = sandbox::SandboxEvent::Kind;

/// A sandbox whose reports the test puts in; a byte in the pipe announces each.
struct WatchFixture {
    boost::asio::io_context io;
    Pipe pipe = make_pipe().value();
    std::deque<sandbox::SandboxEvent> reports;
    std::vector<std::string> seen;
    std::shared_ptr<int> session = std::make_shared<int>(0);
    bool closes = false;  // at the first report
    SandboxWatch watch{
        io,
        [this] { return read(); },
        {.on_sandbox_died = [this] { see("died"); },
         .on_worker_exit =
             [this](const sandbox::WorkerExit& exit) { see("exit " + std::to_string(exit.id)); },
         .on_swept = [this] { see("swept"); },
         .on_group_swept =
             [this](sandbox::WorkerGroup group) { see("swept " + std::to_string(group)); },
         .on_denied =
             [this](const sandbox::Denial& denial) { see("denied " + denial.system_call); }},
        [this] { return session; }};

    void see(std::string what) {
        seen.push_back(std::move(what));
        if (closes) {
            watch.close();
        }
    }
    Result<std::optional<sandbox::SandboxEvent>> read() {
        if (reports.empty()) {
            return std::optional<sandbox::SandboxEvent>();
        }
        sandbox::SandboxEvent one = std::move(reports.front());
        reports.pop_front();
        char byte = 0;
        REQUIRE(::read(pipe.read_end.get(), &byte, 1) == 1);
        return std::optional(std::move(one));
    }
    void report(EventKind kind, std::uint32_t number = 0) {
        sandbox::SandboxEvent event;
        event.kind = kind;
        event.worker.id = number;
        event.group = static_cast<sandbox::WorkerGroup>(number);
        event.denial.system_call = "ptrace";
        reports.push_back(std::move(event));
        REQUIRE(::write(pipe.write_end.get(), "x", 1) == 1);
    }
    void begin() { REQUIRE(watch.begin(pipe.read_end.get()).has_value()); }
    void poll() {
        io.restart();
        (void)io.poll();
    }
};

TEST_CASE_METHOD(WatchFixture, "reports are passed on in their order", "[session][watch]") {
    begin();
    poll();
    CHECK(seen.empty());
    report(EventKind::kWorkerExited, 7);
    report(EventKind::kDenied);
    report(EventKind::kSwept);
    report(EventKind::kGroupSwept, 2);
    poll();
    CHECK(seen == std::vector<std::string>{"exit 7", "denied ptrace", "swept", "swept 2"});
    CHECK_FALSE(watch.is_sandbox_gone());
    report(EventKind::kSandboxDied);
    poll();
    CHECK(seen.back() == "died");
    CHECK(watch.is_sandbox_gone());
    report(EventKind::kSwept);
    poll();
    CHECK(seen.back() == "died");  // nothing follows
}

TEST_CASE_METHOD(WatchFixture, "refusals come ahead of their turn", "[session][watch]") {
    begin();
    report(EventKind::kWorkerExited, 7);
    report(EventKind::kDenied);
    watch.take_denials();
    CHECK(seen == std::vector<std::string>{"denied ptrace"});
    poll();
    CHECK(seen == std::vector<std::string>{"denied ptrace", "exit 7"});
}

TEST_CASE_METHOD(WatchFixture, "a closed watch passes nothing on", "[session][watch]") {
    begin();
    report(EventKind::kSwept);
    SECTION("before") {
        watch.close();
        poll();
        CHECK(seen.empty());
    }
    SECTION("from inside a report") {
        closes = true;
        report(EventKind::kSwept);
        poll();
        CHECK(seen.size() == 1);
    }
    SECTION("while its owner is being destroyed") {
        session.reset();
        poll();
        CHECK(seen.empty());
    }
}

TEST_CASE_METHOD(WatchFixture, "a descriptor that is none is refused", "[session][watch]") {
    CHECK(watch.begin(-1).has_error());
}

}  // namespace
}  // namespace cellkeep::session
