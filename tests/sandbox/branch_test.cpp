// SPDX-License-Identifier: Apache-2.0
//
// A fork of a worker leaves its sandbox for one of its own, which lies within.
#include "protocol/support/syscall.hpp"
#include "sandbox/server/branch_place.hpp"
#include "sandbox/shared/sleep_messages.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::test {

using sandbox::BranchLauncher;
using sandbox::kLeavingCallsMax;
using sandbox::kSleepingGroup;
using sandbox::LeaveReport;
using sandbox::Sandbox;
using sandbox::SandboxEvent;
using sandbox::WakeReply;
using sandbox::WakeRequest;
using sandbox::WorkerSpec;

namespace {

sandbox::Policy branched_policy() {
    sandbox::Policy policy = test_policy();
    policy.branches = true;
    return policy;
}

template <typename T>
T take(Result<T> result) {
    INFO((result.has_error() ? result.error().message() : ""));
    REQUIRE(result.has_value());
    return std::move(result).value();
}

sandbox::Worker take_over(Sandbox& sandbox, pid_t forked, sandbox::WorkerGroup group) {
    WorkerSpec spec;
    spec.forked = forked;
    spec.group = group;
    return take(sandbox.start(std::move(spec)));
}

std::string read_line(int fd) {
    std::string text;
    std::array<char, 256> buffer{};
    while (text.find('\n') == std::string::npos) {
        REQUIRE(wait_readable(fd));
        const ssize_t got = ::read(fd, buffer.data(), buffer.size());
        REQUIRE(got > 0);
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
}

/// A worker of the parent, and a copy of it that sleeps.
struct Origin {
    Sandbox parent;
    UniqueFd link;
    UniqueFd socket;  // the server's end of the copy's
    std::optional<sandbox::Worker> copy;

    explicit Origin(const sandbox::Policy& policy = branched_policy())
        : parent(make_sandbox(policy)) {
        auto ends = take(make_socket_pair(SOCK_STREAM));
        auto sockets = take(make_socket_pair(SOCK_SEQPACKET));
        WorkerSpec spec;
        spec.argv = {"/probe", "--copied"};
        spec.stdout_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        spec.link_fd = std::move(ends.second);
        (void)take(parent.start(std::move(spec)));
        const std::array<int, 1> far{sockets.second.get()};
        require_ok(
            send_with_fds(ends.first.get(), std::as_bytes(std::span("c", 1)), std::span(far)));
        copy = take_over(parent, std::stoi(read_line(ends.first.get())), kSleepingGroup);
        link = std::move(ends.first);
        socket = std::move(sockets.first);
        const WakeReply asleep = read_reply();
        REQUIRE(asleep.sequence == sandbox::kAsleepSequence);
    }
    WakeReply read_reply() const {
        WakeReply reply;
        REQUIRE(wait_readable(socket.get()));
        REQUIRE(::recv(socket.get(), &reply, sizeof(reply), 0) == sizeof(reply));
        return reply;
    }
};

/// What a process on its way is told and tells.
struct Crossing {
    BranchLauncher launcher;
    Sandbox branch;
    UniqueFd link;
    UniqueFd out;
    LeaveReport report;

    Crossing(Origin& origin, bool let_pass)
        : launcher(take(sandbox::find_place(origin.copy->pidfd))),
          branch(take(Sandbox::create(branched_policy(), launcher))) {
        auto ends = take(make_socket_pair(SOCK_STREAM));
        auto pipe = take(make_pipe());
        auto gate = take(make_socket_pair(SOCK_SEQPACKET));
        require_ok(branch.give_outputs(pipe.write_end, pipe.write_end));
        std::vector<int> fds{
            pipe.write_end.get(), pipe.write_end.get(), ends.second.get(), gate.second.get()};
        for (const UniqueFd& one : branch.namespaces()) {
            fds.push_back(one.get());
        }
        const WakeRequest request{1, 0, sandbox::WakeKind::kBranch};
        require_ok(send_with_fds(
            origin.socket.get(), std::as_bytes(std::span(&request, 1)), std::span<const int>(fds)));
        const WakeReply reply = origin.read_reply();
        REQUIRE(reply.forked > 1);
        const auto leaving = take_over(origin.parent, reply.forked, kSleepingGroup);
        const auto numbers = take(sandbox::numbers_of(leaving.pidfd));
        REQUIRE(numbers.back() == reply.forked);
        if (let_pass) {
            require_ok(origin.parent.let_pass(reply.forked, kLeavingCallsMax));
        }
        REQUIRE(::send(gate.first.get(), "g", 1, 0) == 1);
        REQUIRE(wait_readable(gate.first.get()));
        REQUIRE(::recv(gate.first.get(), &report, sizeof(report), 0) == sizeof(report));
        link = std::move(ends.first);
        out = std::move(pipe.read_end);
    }
};

/// What the user namespace above that of the guests says of those beneath it.
std::string bound_above(const UniqueFd& guests) {
    auto pipe = take(make_pipe());
    const pid_t pid = ::fork();
    if (pid == 0) {
        const int above = ::ioctl(guests.get(), NS_GET_PARENT);
        const int entered = ::setns(above, CLONE_NEWUSER);
        const int file = ::open("/proc/sys/user/max_user_namespaces", O_RDONLY | O_CLOEXEC);
        std::array<char, 32> text{};
        const ssize_t got = entered < 0 ? -1 : ::read(file, text.data(), text.size());
        const auto size = static_cast<std::size_t>(got < 0 ? 0 : got);
        ::_exit(size > 0 && ::write(pipe.write_end.get(), text.data(), size) == got ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    REQUIRE(status == 0);
    return read_line(pipe.read_end.get());
}

bool has_file(const Sandbox& sandbox, const char* name) {
    return ::faccessat(sandbox.workspace_fd(), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

TEST_CASE("a fork of a copy leaves for a sandbox of its own, and nothing of it stays") {
    Origin origin;
    Crossing crossing(origin, true);
    CHECK(crossing.report.error == 0);
    Sandbox& branch = crossing.branch;
    const auto arrived = take_over(branch, crossing.report.forked, 0);
    require_ok(sandbox::check_powerless(arrived.pidfd));
    require_ok(sandbox::move_to_cgroups(arrived.pidfd, branch.cgroup_files()));
    REQUIRE(::write(crossing.link.get(), "h", 1) == 1);
    // A child of the branch's pid 1, the guest's user, without the parent's files, with its own.
    CHECK(read_line(crossing.out.get()) == "1 1 1000 none ok " + std::to_string(EPERM) + "\n");
    CHECK(has_file(origin.parent, "parents"));
    CHECK_FALSE(has_file(origin.parent, "own"));
    CHECK(has_file(branch, "own"));
    CHECK_FALSE(has_file(branch, "parents"));
    // What is started there is among its files.
    const std::string look = "import os; print(os.listdir('/workspace'))";
    CHECK(run_python(branch, look).out == "['own']\n");
    // The one that left has ended, and its parent has the files that it had.
    CHECK(wait_event(origin.parent).kind == SandboxEvent::Kind::kWorkerExited);
    CHECK(run_python(origin.parent, look).out == "['parents']\n");
    // Its pid 1 ends it, and the parent lives.
    require_ok(branch.kill_workers(kPatience));
    CHECK(wait_event(branch).worker.id == arrived.id);
    CHECK(run_python(origin.parent, "print(1)").out == "1\n");
    CHECK(run_python(branch, "print(2)").out == "2\n");
    require_ok(branch.destroy(kPatience));
    CHECK(run_python(origin.parent, "print(3)").out == "3\n");
    require_ok(origin.parent.destroy(kPatience));
}

TEST_CASE("one launcher makes many branches, and there is room for them only meanwhile") {
    Origin origin;
    const auto place = take(sandbox::find_place(origin.copy->pidfd));
    const std::string before = bound_above(place.user);
    BranchLauncher launcher(take(sandbox::find_place(origin.copy->pidfd)));
    sandbox::Policy wrong = branched_policy();
    wrong.launcher = "/nowhere/cellkeep-sandbox";
    CHECK(Sandbox::create(wrong, launcher).has_error());
    CHECK(bound_above(place.user) == before);
    for (const char* said : {"1\n", "2\n"}) {
        auto branch = take(Sandbox::create(branched_policy(), launcher));
        CHECK(bound_above(place.user) == before);
        CHECK(run_python(branch, "print(" + std::string(said, 1) + ")").out == said);
        require_ok(branch.destroy(kPatience));
    }
    std::string meanwhile;
    const Status failed = launcher.with_room(branched_policy().launcher, [&]() -> Status {
        meanwhile = bound_above(place.user);
        return Error(ErrorCode::kCancelled, "not wanted");
    });
    CHECK(std::stol(meanwhile) > std::stol(before));
    REQUIRE(failed.has_error());
    CHECK(failed.error().code() == ErrorCode::kCancelled);
    CHECK(bound_above(place.user) == before);
    // Another process takes the place of the one that a failure has ended.
    auto branch = take(Sandbox::create(branched_policy(), launcher));
    CHECK(run_python(branch, "print(3)").out == "3\n");
    require_ok(branch.destroy(kPatience));
    require_ok(origin.parent.destroy(kPatience));
}

TEST_CASE("what gives capabilities away gives a guest of a branchable sandbox none") {
    auto sandbox = take(Sandbox::create(branched_policy()));
    const std::string tries =
        "import ctypes, errno\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def call(name, *words):\n"
        "    done = getattr(libc, name)(*words)\n"
        "    return 'ok' if done == 0 else errno.errorcode[ctypes.get_errno()]\n"
        "header = (ctypes.c_uint32 * 2)(0x20080522, 0)\n"
        "print(call('prctl', 24, 0, 0, 0, 0), call('prctl', 28, 0, 0, 0, 0),\n"
        "      call('prctl', 47, 2, 0, 0, 0),\n"
        "      call('capset', header, (ctypes.c_uint32 * 6)(1, 1, 1)),\n"
        "      call('capset', header, (ctypes.c_uint32 * 6)()))\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line[:3] == 'Cap'])";
    const std::string none = "'0000000000000000'";
    // The bounding set, the securebits, an ambient capability, all three sets; and nothing at all.
    CHECK(
        run_python(sandbox, tries).out == "EPERM EPERM EPERM EPERM ok\n[" + none + ", " + none +
                                              ", " + none + ", " + none + ", " + none + "]\n");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a process that the server has not named does not leave, and is reported") {
    Origin origin;
    Crossing crossing(origin, false);
    CHECK(crossing.report.error == EPERM);
    CHECK(crossing.report.step == 0);
    const SandboxEvent event = wait_any_event(origin.parent);
    CHECK(event.kind == SandboxEvent::Kind::kDenied);
    CHECK(event.denial.system_call == "setns");
    // The next one may.
    const Crossing next(origin, true);
    CHECK(next.report.error == 0);
}

TEST_CASE("from a sandbox that was not made for it no process leaves") {
    Origin origin(test_policy());
    // It could enter the namespaces, but not give away what it has there.
    const Crossing crossing(origin, true);
    CHECK(crossing.report.error == EPERM);
    CHECK(crossing.report.step == sandbox::kBranchNamespaceCount);
    CHECK(crossing.report.forked == 0);
}

TEST_CASE("a branch outlives what ran in its parent, and not its parent's pid 1") {
    Origin origin;
    BranchLauncher launcher(take(sandbox::find_place(origin.copy->pidfd)));
    auto branch = take(Sandbox::create(branched_policy(), launcher));
    Sandbox rest = origin.parent.set_aside();
    require_ok(rest.retire());
    CHECK(run_python(branch, "print(1)").out == "1\n");
    require_ok(rest.destroy(kPatience));
    SandboxEvent event = wait_any_event(branch);
    CHECK(event.kind == SandboxEvent::Kind::kSandboxDied);
    require_ok(branch.destroy(kPatience));
}

}  // namespace cellkeep::test
