// SPDX-License-Identifier: Apache-2.0
//
// The sandbox under stress: many at once, fork bombs while it is killed, failures in the middle.
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace cellkeep::test {

using sandbox::Policy;
using sandbox::Sandbox;

namespace {

constexpr const char* kForkBomb = R"(
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
)";

}  // namespace

TEST_CASE("a running fork bomb is killed whole, and the sandbox is usable again") {
    auto sandbox = make_sandbox();
    auto bomb = start_inside(sandbox, {"/usr/bin/python3", "-c", kForkBomb});
    for (int round = 0; round < 3; ++round) {
        require_ok(sandbox.kill_workers(kPatience));
        CHECK(wait_readable(bomb.pidfd.get()));
        CHECK(wait_event(sandbox).worker.signaled);
        CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
        bomb = start_inside(sandbox, {"/usr/bin/python3", "-c", kForkBomb});
    }
    require_ok(sandbox.destroy(kPatience));
    CHECK(wait_readable(bomb.pidfd.get()));
}

TEST_CASE("fifty sandboxes live at once") {
    std::vector<Sandbox> all;
    all.reserve(50);
    for (int i = 0; i < 50; ++i) {
        all.push_back(make_sandbox());
    }
    for (Sandbox& sandbox : all) {
        CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    }
    all.clear();
    CHECK_FALSE(has_children());
}

TEST_CASE("a sandbox that fails in the middle leaves no process and no descriptor") {
    require_ok(make_sandbox().destroy(
        kPatience));  // what is made once per server, like the seccomp program
    const std::ptrdiff_t descriptors = open_descriptors();
    Policy policy = test_policy();
    policy.read_only.push_back({"/usr/bin", "/usr/no/such/directory"});
    for (int i = 0; i < 5; ++i) {
        const auto made = Sandbox::create(policy);
        REQUIRE(made.has_error());
        CHECK_THAT(
            made.error().message(), Catch::Contains("mount read-only path /usr/no/such/directory"));
    }
    CHECK_FALSE(has_children());
    CHECK(open_descriptors() == descriptors);
}

TEST_CASE("a server that ignores SIGCHLD can still end its sandboxes") {
    REQUIRE(::signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    auto sandbox = make_sandbox();
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    require_ok(sandbox.destroy(kPatience));
    REQUIRE(::signal(SIGCHLD, SIG_DFL) != SIG_ERR);
}

TEST_CASE("moving a sandbox object moves the sandbox, and assigning over one ends it") {
    auto first = make_sandbox();
    auto worker = start_inside(first, {"/usr/bin/sleep", "1000"});
    auto second = std::move(first);
    CHECK(run_inside(second, {"/usr/bin/true"}).status == 0);
    second = make_sandbox();
    CHECK(wait_readable(worker.pidfd.get()));
    CHECK(run_inside(second, {"/usr/bin/true"}).status == 0);
}

TEST_CASE("worker exits that are not read wait in the socket and in the table") {
    auto sandbox = make_sandbox();
    // The socket holds some hundreds; beyond it, pid 1 keeps them in its table of workers and
    // refuses a start when that is full. Every exit still arrives, once.
    std::size_t started = 0;
    while (started < 2000) {
        sandbox::WorkerSpec spec;
        spec.argv = {"/probe"};
        spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        const auto worker = sandbox.start(std::move(spec));
        if (worker.has_error()) {
            CHECK(worker.error().errno_value() == EAGAIN);
            break;
        }
        ++started;
        REQUIRE(wait_readable(worker.value().pidfd.get()));
    }
    CHECK(started > 32);
    CHECK(started < 2000);
    for (std::size_t seen = 0; seen < started; ++seen) {
        REQUIRE(wait_event(sandbox).worker.status == 2);
    }
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
}

TEST_CASE("a newborn that another worker stops is killed after a while, and the sandbox goes on") {
    auto sandbox = make_sandbox();
    // Stops the next processes, if it is quick enough, before they become their programs.
    auto stopper = start_inside(sandbox, {"/usr/bin/python3", "-c", R"(
import os, signal
me = os.getpid()
while True:
    for pid in range(me + 1, me + 8):
        try: os.kill(pid, signal.SIGSTOP)
        except OSError: pass
)"});
    for (int i = 0; i < 3; ++i) {
        sandbox::WorkerSpec spec;
        spec.argv = {"/usr/bin/true"};
        spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        const auto started = sandbox.start(std::move(spec));
        if (started.has_error()) {
            CHECK(started.error().errno_value() == ETIMEDOUT);
            break;
        }
    }
    require_ok(sandbox.kill_workers(kPatience));
    CHECK(wait_readable(stopper.pidfd.get()));
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a pid 1 that does not answer makes no start hang, and the sandbox is dead then") {
    auto sandbox = make_sandbox();
    REQUIRE(::kill(only_child(), SIGSTOP) == 0);
    sandbox::WorkerSpec spec;
    spec.argv = {"/usr/bin/true"};
    spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    const auto late = sandbox.start(std::move(spec));
    REQUIRE(late.has_error());
    CHECK(late.error().code() == ErrorCode::kTimeout);
    CHECK(wait_event(sandbox).kind == sandbox::SandboxEvent::Kind::kSandboxDied);
    require_ok(sandbox.destroy(kPatience));
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a pid 1 that does not read fills its socket, and more is refused at once") {
    auto sandbox = make_sandbox();
    REQUIRE(::kill(only_child(), SIGSTOP) == 0);
    Status last = ok();
    for (int i = 0; i < 10'000; ++i) {
        last = sandbox.kill_workers(std::chrono::milliseconds(0));
        REQUIRE(last.has_error());
        if (last.error().code() != ErrorCode::kTimeout) {
            break;
        }
    }
    CHECK(last.error().code() == ErrorCode::kUnavailable);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a root without the needed capabilities is refused, not taken for an ordinary user") {
    if (::geteuid() != 0) {
        return;
    }
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        // No REQUIRE in here: the exit code is the result.
        __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
        __user_cap_data_struct data[2]{};
        if (::syscall(SYS_capget, &header, data) < 0) {
            ::_exit(1);
        }
        data[0].effective &= ~(1U << static_cast<unsigned>(CAP_SETUID));
        if (::syscall(SYS_capset, &header, data) < 0) {
            ::_exit(2);
        }
        const auto made = Sandbox::create(test_policy());
        const bool refused =
            made.has_error() && made.error().code() == ErrorCode::kPermissionDenied;
        ::_exit(refused ? 0 : 3);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

}  // namespace cellkeep::test
