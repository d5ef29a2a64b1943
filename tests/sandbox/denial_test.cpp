// SPDX-License-Identifier: Apache-2.0
//
// The reports of the system calls that a session's filter refuses, and how a guest cannot misuse
// these reports.
#include "protocol/support/syscall.hpp"
#include "sandbox/shared/messages.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::test {

using sandbox::ControlState;
using sandbox::Policy;
using sandbox::Sandbox;
using sandbox::SandboxEvent;

namespace {

using Arguments = std::vector<std::string>;

struct Probed {
    std::string answer;
    std::optional<sandbox::Denial> told;  // the report that was there with the answer
};

Probed probe_and_listen(Sandbox& sandbox, const Arguments& arguments) {
    auto out = make_pipe();
    REQUIRE(out.has_value());
    sandbox::WorkerSpec spec;
    spec.argv = {"/probe"};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.stdout_fd = std::move(out.value().write_end);
    spec.stderr_fd = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    REQUIRE(sandbox.start(std::move(spec)).has_value());
    Probed probed;
    probed.answer = read_all(out.value().read_end.get());
    probed.answer.resize(probed.answer.find_last_not_of('\n') + 1);
    SandboxEvent event = wait_any_event(sandbox);
    if (event.kind == SandboxEvent::Kind::kDenied) {
        probed.told = event.denial;
        event = wait_any_event(sandbox);
    }
    CHECK(event.kind == SandboxEvent::Kind::kWorkerExited);
    return probed;
}

/// Refused `argv[1]` times, by ctypes: unshare(CLONE_NEWUSER).
constexpr const char* kFlood = R"(
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
for _ in range(int(sys.argv[1])):
    if libc.unshare(0x10000000) != -1 or ctypes.get_errno() != errno.EPERM:
        sys.exit(1)
)";

/// A filter of this process's that allows all and listens: no other may listen then (seccomp(2)).
bool listen_ourselves() {
    sock_filter allow{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    const sock_fprog program{1, &allow};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0 &&
           ::syscall(
               SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) >=
               0;
}

const sandbox::Control& denial_control(const Sandbox& sandbox) {
    const auto& controls = sandbox.isolation().controls;
    return *std::find_if(controls.begin(), controls.end(), [](const auto& control) {
        return control.name == "denial_reports";
    });
}

}  // namespace

TEST_CASE("a refused call that matters answers EPERM and is reported by its name") {
    struct Refused {
        const char* name;
        Arguments probe;
    };
    const std::vector<Refused> all{
        {"unshare", {"unshare", text(CLONE_NEWUSER)}},
        {"unshare", {"unshare", text(CLONE_NEWNS)}},
        {"clone", {"clone", text(CLONE_NEWUSER)}},
        {"clone", {"clone", text(CLONE_NEWNET | CLONE_NEWNS)}},
        {"setns", {"setns"}},
        {"mount", {"mount"}},
        {"fsopen", {"fsopen", "tmpfs"}},
        {"open_tree", {"open_tree"}},
        {"chroot", {"chroot"}},
        {"ptrace", {"ptrace_traceme"}},
        {"process_vm_readv", {"process_vm"}},
        {"pidfd_getfd", {"pidfd_getfd"}},
        {"kcmp", {"kcmp"}},
        {"bpf", {"bpf"}},
        {"perf_event_open", {"perf"}},
        {"keyctl", {"keyctl"}},
        {"add_key", {"add_key"}},
        {"seccomp", {"seccomp"}},
        {"io_uring_setup", {"io_uring"}},
        {"name_to_handle_at", {"handle"}},
        {"fanotify_init", {"fanotify"}},
        {"userfaultfd", {"syscall", text(SYS_userfaultfd), "1"}},
        {"init_module", {"syscall", text(SYS_init_module), "0", "0", "0"}},
        {"kexec_load", {"syscall", text(SYS_kexec_load), "0", "0", "0", "0"}},
        {"clock_settime", {"syscall", text(SYS_clock_settime), "0", "0"}},
        {"reboot", {"syscall", text(SYS_reboot), "0", "0", "0", "0"}},
        {"socket", {"socket", text(AF_ALG), text(SOCK_SEQPACKET), "0"}},
        {"socket", {"socket", text(AF_VSOCK), text(SOCK_STREAM), "0"}},
        {"socket", {"socket", text(AF_NETLINK), text(SOCK_RAW), text(NETLINK_NETFILTER)}},
        {"socket", {"socket", text(AF_MAX - 1), text(SOCK_RAW), "0"}},
        {"socket", {"socket", text(AF_MAX), text(SOCK_RAW), "0"}},
        {"socket", {"socket", "4294967295", text(SOCK_RAW), "0"}},
        {"socket", {"socket", text(AF_PACKET), text(SOCK_RAW), "0"}},
        {"socket", {"socket", text(AF_INET), text(SOCK_RAW), "1"}},
        {"socket", {"socket", text(AF_X25), text(SOCK_SEQPACKET), "0"}},
    };
    auto sandbox = make_sandbox();
    CHECK(denial_control(sandbox).state == ControlState::kApplied);
    std::uint32_t told = 0;
    for (const Refused& refused : all) {
        if (told++ == sandbox::kDenialReportsBurst) {  // further reports of one sandbox come later
            require_ok(sandbox.destroy(kPatience));
            sandbox = make_sandbox();
            told = 1;
        }
        INFO(refused.name << " " << refused.probe[0] << " " << refused.probe.back());
        const Probed probed = probe_and_listen(sandbox, refused.probe);
        CHECK(probed.answer == "EPERM");
        REQUIRE(probed.told);
        CHECK(probed.told->system_call == refused.name);
        CHECK(probed.told->count == 1);
    }
    // The control: outside no filter refuses the calls or reports them.
    CHECK(probe_outside({"keyctl"}) == "ok");
    CHECK(probe_outside({"handle"}) == "ok");
    CHECK(probe_outside({"ptrace_traceme"}) == "ok");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("what is allowed, and what programs try by habit, is not reported") {
    auto sandbox = make_sandbox();
    for (const auto& [probe, answer] : std::vector<std::pair<Arguments, std::string>>{
             {{"socket", text(AF_INET), text(SOCK_STREAM), "0"}, "ok"},
             {{"clone", "0"}, "ok"},
             {{"send_oob"}, "EPERM"},
             {{"vmsplice"}, "EPERM"},
             {{"personality", "0x0040000"}, "EPERM"},
             {{"syscall", text(SYS_setuid), "0"}, "EPERM"},
             {{"syscall", text(SYS_sendfile), "1", "0", "0", "1"}, "EINVAL"},
             {{"syscall", text(SYS_clone3), "0", "0"}, "ENOSYS"},
             {{"syscall", "460"}, "ENOSYS"},
             {{"socket", text(AF_INET), text(SOCK_STREAM), text(132)}, "EPERM"}}) {
        INFO(probe[0] << " " << probe.back());
        const Probed probed = probe_and_listen(sandbox, probe);
        CHECK(probed.answer == answer);
        CHECK_FALSE(probed.told);
    }
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a guest that is refused without end pays for it itself, and is summed up") {
    constexpr std::uint64_t kCallsEach = 3000;
    constexpr std::uint64_t kProcesses = 4;
    auto sandbox = make_sandbox();
    auto neighbour = make_sandbox();
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < kProcesses; ++i) {
        (void)start_inside(sandbox, {"/usr/bin/python3", "-c", kFlood, std::to_string(kCallsEach)});
    }
    CHECK(run_inside(neighbour, {"/usr/bin/true"}).status == 0);
    std::uint64_t told = 0;
    std::int64_t messages = 0;
    std::uint64_t exited = 0;
    while (told < kProcesses * kCallsEach || exited < kProcesses) {
        const SandboxEvent event = wait_any_event(sandbox);
        if (event.kind == SandboxEvent::Kind::kWorkerExited) {
            CHECK(event.worker.status == 0);
            ++exited;
            continue;
        }
        REQUIRE(event.kind == SandboxEvent::Kind::kDenied);
        CHECK(event.denial.system_call == "unshare");
        told += event.denial.count;
        ++messages;
    }
    CHECK(told == kProcesses * kCallsEach);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    // kDenialReportsBurst and kDenialReportPeriodMs (sandbox/shared/messages.hpp).
    CHECK(messages <= 32 + took.count() / 100 + 1);
    require_ok(sandbox.destroy(kPatience));
    require_ok(neighbour.destroy(kPatience));
}

TEST_CASE("while a guest is being refused, its workers can be started, ended and counted") {
    auto sandbox = make_sandbox();
    auto flood = start_inside(sandbox, {"/usr/bin/python3", "-c", kFlood, "1000000000"});
    for (int round = 0; round < 3; ++round) {
        CHECK(run_inside(sandbox, {"/usr/bin/true"}).status == 0);
        require_ok(sandbox.kill_workers(kPatience));
        CHECK(wait_readable(flood.pidfd.get()));
        CHECK(wait_event(sandbox).worker.signaled);
        flood = start_inside(sandbox, {"/usr/bin/python3", "-c", kFlood, "1000000000"});
    }
    require_ok(sandbox.destroy(kPatience));
    CHECK(wait_readable(flood.pidfd.get()));
}

TEST_CASE(
    "without a watcher of denials the calls are refused all the same, and the report says so") {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        if (!listen_ourselves()) {
            ::_exit(1);
        }
        Policy policy = test_policy();
        const auto refused = Sandbox::create(policy);
        if (refused.has_value() ||
            refused.error().message().find("denial_reports") == std::string::npos ||
            refused.error().hint().find("--allow-degraded=denial_reports") == std::string::npos) {
            ::_exit(2);
        }
        policy.allow_degraded.insert("denial_reports");
        auto silent = Sandbox::create(policy);
        if (silent.has_error() || denial_control(silent.value()).state != ControlState::kAbsent) {
            ::_exit(3);
        }
        const bool closed =
            probe_inside(silent.value(), {"unshare", text(CLONE_NEWUSER)}) == "EPERM" &&
            probe_inside(silent.value(), {"keyctl"}) == "EPERM" &&
            probe_inside(silent.value(), {"socket", text(AF_ALG), text(SOCK_SEQPACKET), "0"}) ==
                "EPERM";
        ::_exit(closed && silent.value().destroy(kPatience).has_value() ? 0 : 4);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace cellkeep::test
