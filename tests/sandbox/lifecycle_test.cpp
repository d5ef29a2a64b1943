// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/syscall.hpp"
#include "sandbox/shared/messages.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>
#include <thread>
#include <utility>
#include <vector>

namespace cellkeep::test {

using sandbox::Policy;
using sandbox::Sandbox;
using sandbox::SandboxEvent;
using sandbox::WorkerSpec;

namespace {

std::vector<std::string> own_cgroups() {
    return cgroups_of(::getpid());
}

/// Of a process that another one has reaped, too: since Linux 6.15.
bool tells_exits_by_pidfd() {
    utsname host{};
    REQUIRE(::uname(&host) == 0);
    int major = 0;
    int minor = 0;
    char dot = 0;
    std::istringstream(host.release) >> major >> dot >> minor;
    return major > 6 || (major == 6 && minor >= 15);
}

bool has_ended(const UniqueFd& pidfd) {
    return wait_readable(pidfd.get());
}

}  // namespace

TEST_CASE("a program runs inside, its output arrives and its exit code is reported") {
    auto sandbox = make_sandbox();
    const Ran ran = run_inside(sandbox, {"/usr/bin/sh", "-c", "echo out; echo err >&2; exit 7"});
    CHECK(ran.out == "out\n");
    CHECK(ran.err == "err\n");
    CHECK_FALSE(ran.signaled);
    CHECK(ran.status == 7);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a program that dies of a signal is reported with the signal") {
    auto sandbox = make_sandbox();
    const Ran ran = run_inside(sandbox, {"/usr/bin/sh", "-c", "kill -SEGV $$"});
    CHECK(ran.signaled);
    CHECK(ran.status == SIGSEGV);
}

TEST_CASE("every control is applied when the server is root") {
    if (::geteuid() != 0) {
        return;
    }
    auto sandbox = make_sandbox();
    for (const auto& control : sandbox.isolation().controls) {
        INFO(control.name << ": " << control.detail);
        // These tests list the host's own files: image_test.cpp has the images.
        CHECK(
            (control.state == sandbox::ControlState::kApplied) ==
            (control.name != "private_image"));
    }
    CHECK(sandbox.isolation().controls.size() == sandbox::control_names().size());
}

TEST_CASE("destroy leaves no process, no cgroup, no mount and no descriptor") {
    const std::string mounts = slurp("/proc/self/mountinfo");
    const std::ptrdiff_t descriptors = open_descriptors();
    auto sandbox = make_sandbox();
    if (::geteuid() == 0) {
        CHECK_FALSE(own_cgroups().empty());
    }
    // A daemon that has forked twice, and one that ignores every signal it can.
    auto worker = start_inside(
        sandbox, {"/usr/bin/sh", "-c", "trap '' TERM INT HUP; (setsid sleep 1000 &) ; sleep 1000"});
    require_ok(sandbox.destroy(kPatience));
    CHECK(has_ended(worker.pidfd));
    CHECK(own_cgroups().empty());
    CHECK(slurp("/proc/self/mountinfo") == mounts);
    CHECK_FALSE(has_children());
    worker.pidfd.reset();
    CHECK(open_descriptors() == descriptors);
    require_ok(sandbox.destroy(kPatience));  // idempotent
}

TEST_CASE("sandboxes that are ended together die without a wait for each") {
    auto first = make_sandbox();
    auto second = make_sandbox();
    std::vector<sandbox::Worker> workers;
    for (auto* one : {&first, &second}) {
        workers.push_back(start_inside(*one, {"/usr/bin/sh", "-c", "trap '' TERM; sleep 1000"}));
    }
    first.begin_destroy();
    second.begin_destroy();
    for (const auto& worker : workers) {
        pollfd ended{worker.pidfd.get(), POLLIN, 0};
        CHECK(::poll(&ended, 1, 60'000) == 1);
    }
    CHECK(first.usage().has_error());
    require_ok(first.destroy(kPatience));
    require_ok(second.destroy(kPatience));
    first.begin_destroy();  // nothing is left to be killed
    CHECK_FALSE(has_children());
    CHECK(own_cgroups().empty());
}

TEST_CASE("a server that is killed takes its sandbox with it") {
    auto pair = make_socket_pair(SOCK_SEQPACKET);
    REQUIRE(pair.has_value());
    auto& [mine, theirs] = pair.value();
    const pid_t server = ::fork();
    REQUIRE(server >= 0);
    if (server == 0) {
        // No REQUIRE in here: a failure is an end of file on the other side.
        auto made = Sandbox::create(test_policy());
        if (made.has_error()) {
            ::_exit(1);
        }
        WorkerSpec spec;
        spec.argv = {"/usr/bin/sleep", "1000"};
        spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        auto worker = made.value().start(std::move(spec));
        if (worker.has_error()) {
            ::_exit(1);
        }
        const int fd = worker.value().pidfd.get();
        (void)send_with_fds(theirs.get(), std::as_bytes(std::span("x", 1)), std::span(&fd, 1))
            .has_value();
        (void)::pause();
        ::_exit(0);
    }
    theirs.reset();
    REQUIRE(wait_readable(mine.get()));
    std::array<std::byte, 1> byte{};
    auto received = receive_with_fds(mine.get(), byte);
    REQUIRE(received.has_value());
    REQUIRE(received.value().fds.size() == 1);
    REQUIRE(::kill(server, SIGKILL) == 0);
    REQUIRE(::waitpid(server, nullptr, 0) == server);
    CHECK(has_ended(received.value().fds[0]));
    // The next server removes what is left. Pid 1 may still be ending, and a directory can only be
    // removed after its last process has ended: sweep until then.
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!cgroups_of(server).empty() && std::chrono::steady_clock::now() < deadline) {
        require_ok(sandbox::sweep_leftovers());
    }
    CHECK(cgroups_of(server) == std::vector<std::string>());
}

TEST_CASE("files outlive the worker, and kill_workers takes everything but pid 1") {
    auto sandbox = make_sandbox();
    CHECK(run_inside(sandbox, {"/usr/bin/sh", "-c", "echo kept > /workspace/file"}).status == 0);
    auto first = start_inside(sandbox, {"/usr/bin/sh", "-c", "setsid sleep 1000 & sleep 1000"});
    auto second = start_inside(sandbox, {"/usr/bin/sleep", "1000"});
    require_ok(sandbox.kill_workers(kPatience));
    CHECK(has_ended(first.pidfd));
    CHECK(has_ended(second.pidfd));
    for (int i = 0; i < 2; ++i) {
        const SandboxEvent event = wait_event(sandbox);
        CHECK(event.kind == SandboxEvent::Kind::kWorkerExited);
        CHECK(event.worker.signaled);
        CHECK(event.worker.status == SIGKILL);
    }
    if (::geteuid() == 0) {
        CHECK(sandbox.usage().value().processes == 1);
    }
    CHECK(run_inside(sandbox, {"/usr/bin/cat", "/workspace/file"}).out == "kept\n");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("an exec that fails names its step and leaves the sandbox usable") {
    auto sandbox = make_sandbox();
    WorkerSpec spec;
    spec.argv = {"/usr/bin/no-such-program"};
    spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    const auto started = sandbox.start(std::move(spec));
    REQUIRE(started.has_error());
    CHECK(started.error().message() == "exec(/usr/bin/no-such-program): No such file or directory");
    CHECK(started.error().errno_value() == ENOENT);
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    CHECK_FALSE(sandbox.next_event().value().has_value());
}

TEST_CASE("a working directory that is not there names its step") {
    auto sandbox = make_sandbox();
    WorkerSpec spec;
    spec.argv = {"/usr/bin/true"};
    spec.working_directory = "/nowhere";
    spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    const auto started = sandbox.start(std::move(spec));
    REQUIRE(started.has_error());
    CHECK(
        started.error().message() ==
        "enter the working directory(/nowhere): No such file or directory");
}

TEST_CASE(
    "a read-only path that is not there is named, and makes no sandbox unless it is optional") {
    Policy policy = test_policy();
    policy.read_only.push_back({"/no/such/path", "/opt/data", true, true});
    require_ok(make_sandbox(policy).destroy(kPatience));
    policy.read_only.back().optional = false;
    const auto made = Sandbox::create(policy);
    REQUIRE(made.has_error());
    CHECK_THAT(made.error().message(), Catch::Contains("/no/such/path"));
    CHECK(own_cgroups().empty());
}

TEST_CASE("a missing launcher is reported with a hint") {
    Policy policy = test_policy();
    policy.launcher = "/no/such/cellkeep-sandbox";
    const auto made = Sandbox::create(policy);
    REQUIRE(made.has_error());
    CHECK_THAT(made.error().message(), Catch::Contains("/no/such/cellkeep-sandbox"));
    CHECK_FALSE(made.error().hint().empty());
}

TEST_CASE("a start request beyond its bounds is refused") {
    auto sandbox = make_sandbox();
    const auto start = [&](std::vector<std::string> argv, std::vector<std::string> env) {
        WorkerSpec spec;
        spec.argv = std::move(argv);
        spec.env = std::move(env);
        spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        return sandbox.start(std::move(spec));
    };
    CHECK(start({}, {}).error().code() == ErrorCode::kInvalidArgument);
    CHECK(start({"true"}, {}).error().code() == ErrorCode::kInvalidArgument);
    CHECK(
        start({std::string("/usr/bin/true\0x", 15)}, {}).error().code() ==
        ErrorCode::kInvalidArgument);
    CHECK(
        start({"/usr/bin/true"}, std::vector<std::string>(513, "A=b")).error().code() ==
        ErrorCode::kLimitExceeded);
    CHECK(start({"/usr/bin/true"}, std::vector<std::string>(512, "A=b")).has_value());
    // "/workspace", "/usr/bin/true", their NULs and the variable's make 96 KiB exactly.
    const std::size_t room = 96UL * 1024 - 11 - 14 - 1;
    CHECK(
        start({"/usr/bin/true"}, {std::string(room + 1, 'x')}).error().code() ==
        ErrorCode::kLimitExceeded);
    CHECK(start({"/usr/bin/true"}, {std::string(room, 'x')}).has_value());
}

TEST_CASE("as many workers as the table holds run at once, one more is refused") {
    Policy policy = test_policy();
    auto sandbox = make_sandbox(policy);
    std::vector<sandbox::Worker> workers;
    workers.reserve(sandbox::kWorkersMax);
    for (std::size_t i = 0; i < sandbox::kWorkersMax; ++i) {
        workers.push_back(start_inside(sandbox, {"/usr/bin/sleep", "1000"}));
    }
    WorkerSpec spec;
    spec.argv = {"/usr/bin/true"};
    spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    const auto refused = sandbox.start(std::move(spec));
    REQUIRE(refused.has_error());
    CHECK(refused.error().errno_value() == EAGAIN);
    require_ok(sandbox.kill_workers(kPatience));
}

TEST_CASE("the death of pid 1 is an event, and the last one") {
    auto sandbox = make_sandbox();
    // Only its server can kill it; the test stands in for an operator who did.
    const pid_t pid1 = only_child();
    REQUIRE(::kill(pid1, SIGKILL) == 0);
    CHECK(sandbox.unexpected_end().empty());
    CHECK(wait_event(sandbox).kind == SandboxEvent::Kind::kSandboxDied);
    CHECK(sandbox.unexpected_end() == "pid 1 closed its reports");
    CHECK_FALSE(sandbox.next_event().value().has_value());
    WorkerSpec spec;
    spec.argv = {"/usr/bin/true"};
    spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    const auto started = sandbox.start(std::move(spec));
    CHECK(started.has_error());
    await_reaper(pid1);
    require_ok(sandbox.destroy(kPatience));
    if (tells_exits_by_pidfd()) {
        CHECK(sandbox.unexpected_end() == "pid 1 closed its reports; it was killed by signal 9");
    }
}

TEST_CASE("the end of a sandbox that its owner destroys is not unexpected") {
    auto sandbox = make_sandbox();
    require_ok(sandbox.destroy(kPatience));
    CHECK(sandbox.unexpected_end().empty());
}

TEST_CASE("a frozen sandbox stands still, refuses to start, and goes on when thawed") {
    if (::geteuid() != 0) {
        return;
    }
    auto sandbox = make_sandbox();
    auto worker = start_inside(sandbox, {"/usr/bin/sleep", "1000"});
    require_ok(sandbox.freeze());
    WorkerSpec spec;
    spec.argv = {"/usr/bin/true"};
    const auto refused = sandbox.start(std::move(spec));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kConflict);
    require_ok(sandbox.thaw());
    CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
    require_ok(sandbox.freeze());
    require_ok(sandbox.destroy(kPatience));  // frozen or not
}

TEST_CASE("a frozen sandbox keeps fewer files open, and counts on when it is asked") {
    if (::geteuid() != 0) {
        return;
    }
    auto sandbox = make_sandbox();
    const auto counted = sandbox.counters();
    REQUIRE(counted.has_value());
    const auto before = open_descriptors();
    require_ok(sandbox.freeze());
    CHECK(open_descriptors() < before);
    const auto frozen = sandbox.counters();
    REQUIRE(frozen.has_value());
    CHECK(frozen.value().cpu_time >= counted.value().cpu_time);
    require_ok(sandbox.thaw());
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a counter of CPU time that cannot be opened is reported as lost, and comes back") {
    if (::geteuid() != 0) {
        return;
    }
    auto sandbox = make_sandbox();
    CHECK_FALSE(sandbox.counters().value().cpu_lost);
    require_ok(sandbox.freeze());  // closes the counters' files
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit none = before;
    none.rlim_cur = 0;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const bool lost = sandbox.counters().value().cpu_lost;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(lost);
    CHECK_FALSE(sandbox.counters().value().cpu_lost);
    require_ok(sandbox.thaw());
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("what is left of a sandbox can be taken away by another thread") {
    auto sandbox = make_sandbox();
    auto worker = start_inside(sandbox, {"/usr/bin/sleep", "1000"});
    auto rest = sandbox.release();
    SECTION("its owner has none any more") {
        CHECK(sandbox.usage().error().code() == ErrorCode::kConflict);
        CHECK(sandbox.counters().error().code() == ErrorCode::kConflict);
        CHECK(sandbox.freeze().error().code() == ErrorCode::kConflict);
        CHECK(sandbox.thaw().error().code() == ErrorCode::kConflict);
        CHECK(sandbox.is_waiting().error().code() == ErrorCode::kConflict);
        CHECK(sandbox.begin_sweep().error().code() == ErrorCode::kConflict);
        CHECK_FALSE(sandbox.restart_memory_peak());
        require_ok(sandbox.destroy(kPatience));
    }
    SECTION("nothing can be started in what is left, either") {
        WorkerSpec spec;
        spec.argv = {"/usr/bin/true"};
        CHECK(rest.start(std::move(spec)).error().code() == ErrorCode::kConflict);
    }
    SECTION("it may be released twice") {
        auto nothing = sandbox.release();
        require_ok(nothing.destroy(kPatience));
    }
    Status gone = Error(ErrorCode::kSystem, "not tried");
    std::thread([&] { gone = rest.destroy(kPatience); }).join();
    require_ok(gone);
    pollfd process{worker.pidfd.get(), POLLIN, 0};
    CHECK(::poll(&process, 1, 0) == 1);
}

}  // namespace cellkeep::test
