// SPDX-License-Identifier: Apache-2.0
//
// A sandbox on its way from one program in the server's process to another: here both are this one.
#include "sandbox/server/assembly.hpp"
#include "sandbox/server/passed_sandbox.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace cellkeep::test {

using sandbox::PassedSandbox;
using sandbox::Sandbox;
using sandbox::SandboxEvent;

namespace {

/// A thread that makes a sandbox and stays until its end is wanted.
class Maker {
 public:
    Maker()
        : thread_([this] {
              made_.set_value(Sandbox::create(test_policy()));
              end_.get_future().wait();
          }) {}
    Maker(const Maker&) = delete;
    Maker& operator=(const Maker&) = delete;
    ~Maker() { end(); }

    Sandbox take() {
        auto made = made_.get_future().get();
        REQUIRE(made.has_value());
        return std::move(made).value();
    }
    void end() {
        if (thread_.joinable()) {
            end_.set_value();
            thread_.join();
        }
    }

 private:
    std::promise<Result<Sandbox>> made_;
    std::promise<void> end_;
    std::thread thread_;
};

void want_death_signal(Sandbox& sandbox, bool wanted) {
    const auto asked = sandbox.ask_for_death_signal(wanted);
    REQUIRE(asked.has_value());
    require_ok(sandbox.wait_for_death_signal(asked.value(), kPatience));
}

bool is_running(const UniqueFd& pidfd) {
    pollfd watched{pidfd.get(), POLLIN, 0};
    return ::poll(&watched, 1, 0) == 0;
}

}  // namespace

TEST_CASE("a pid 1 ends with the thread that made it") {
    Maker maker;
    auto sandbox = maker.take();
    const auto worker = start_inside(sandbox, {"/usr/bin/sleep", "1000"});
    maker.end();
    CHECK(wait_readable(worker.pidfd.get()));
    CHECK(wait_any_event(sandbox).kind == SandboxEvent::Kind::kSandboxDied);
}

TEST_CASE("a pid 1 that was told to outlives its thread, and not its server") {
    Maker maker;
    auto sandbox = maker.take();
    const auto worker = start_inside(sandbox, {"/usr/bin/sleep", "1000"});
    want_death_signal(sandbox, false);
    maker.end();
    // It answers, so it has outlived what came before the request.
    CHECK(run_inside(sandbox, {"/usr/bin/echo", "here"}).out == "here\n");
    SECTION("the server's end is that of the control socket") {
        PassedSandbox passed = sandbox.pass_on();
        CHECK(is_running(worker.pidfd));
        passed.control.reset();
        CHECK(wait_readable(worker.pidfd.get()));
        CHECK(wait_readable(passed.pidfd.get()));
        require_ok(Sandbox::take_over(std::move(passed)).destroy(kPatience));
    }
    SECTION("the same when it was told to watch again") {
        want_death_signal(sandbox, true);
        CHECK(run_inside(sandbox, {"/usr/bin/echo", "here"}).out == "here\n");
        PassedSandbox passed = sandbox.pass_on();
        passed.control.reset();
        CHECK(wait_readable(passed.pidfd.get()));
        require_ok(Sandbox::take_over(std::move(passed)).destroy(kPatience));
    }
}

TEST_CASE("a sandbox that is taken over is the same one") {
    auto before = make_sandbox();
    const auto worker = start_inside(before, {"/usr/bin/sleep", "1000"});
    CHECK(run_inside(before, {"/usr/bin/sh", "-c", "echo kept > /workspace/kept"}).status == 0);
    const auto report = before.isolation();
    const auto zygote = before.zygote();
    const auto directories = cgroups_of(::getpid());
    std::optional<Sandbox> after(Sandbox::take_over(before.pass_on(), zygote));
    // For the owner of the old one it is destroyed, and that harms nothing.
    require_ok(before.destroy(kPatience));
    CHECK(before.begin_sweep().has_error());
    CHECK(before.ask_for_death_signal(true).has_error());
    CHECK(is_running(worker.pidfd));
    CHECK(cgroups_of(::getpid()) == directories);

    CHECK(after->isolation().controls.size() == report.controls.size());
    CHECK(after->is_warm() == (zygote != nullptr));
    CHECK(run_inside(*after, {"/usr/bin/cat", "/workspace/kept"}).out == "kept\n");
    // Numbers go on: neither the old worker nor an old answer is taken for a new one.
    CHECK(start_inside(*after, {"/usr/bin/sleep", "1000"}).id > worker.id);
    const auto usage = after->usage();
    REQUIRE(usage.has_value());
    if (::geteuid() == 0) {
        CHECK(usage.value().memory_bytes > 0);
        CHECK(usage.value().processes >= 3);
        require_ok(after->change_limits({.memory_bytes = {}, .processes = 8, .cpu_cores = {}}));
        require_ok(after->freeze(kPatience));
        require_ok(after->thaw());
    }
    require_ok(after->kill_workers(kPatience));
    CHECK_FALSE(is_running(worker.pidfd));
    require_ok(after->destroy());
    after.reset();
    for (const std::string& directory : directories) {
        CAPTURE(directory);
        CHECK((::access(directory.c_str(), F_OK) != 0 || zygote != nullptr));
    }
}

TEST_CASE("cgroups that are made afterwards have names of their own") {
    const auto named = sandbox::sessions_named();
    sandbox::name_sessions_from(named + 1000);
    CHECK(sandbox::sessions_named() == named + 1000);
    sandbox::name_sessions_from(named);  // an earlier program's
    CHECK(sandbox::sessions_named() == named + 1000);
    auto sandbox = make_sandbox();
    CHECK(sandbox::sessions_named() > named + 1000);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("what is passed and taken by nobody ends") {
    auto sandbox = make_sandbox();
    const auto worker = start_inside(sandbox, {"/usr/bin/sleep", "1000"});
    SECTION("its owner lets it go") {
        const auto zygote = sandbox.zygote();
        {
            const Sandbox taken = Sandbox::take_over(sandbox.pass_on(), zygote);
            CHECK(is_running(worker.pidfd));
        }
        CHECK_FALSE(is_running(worker.pidfd));
    }
    SECTION("nobody is its owner") {
        const auto zygote = sandbox.zygote();
        PassedSandbox passed = sandbox.pass_on();
        passed.control.reset();
        CHECK(wait_readable(worker.pidfd.get()));
        require_ok(Sandbox::take_over(std::move(passed), zygote).destroy(kPatience));
    }
}

}  // namespace cellkeep::test
