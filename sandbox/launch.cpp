// SPDX-License-Identifier: Apache-2.0
#include "sandbox/launch.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/controls.hpp"
#include "sandbox/leftovers.hpp"
#include "sandbox/plan_codec.hpp"

#include <climits>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace cellkeep::sandbox {

namespace {

constexpr int kFirstSafeFd = 16;  // above every number that the launcher's descriptors get
constexpr std::chrono::milliseconds kReapPatience(2000);

Result<std::string> find_launcher(const std::string& launcher) {
    if (!launcher.empty()) {
        return launcher;
    }
    std::array<char, PATH_MAX> buffer{};
    const ssize_t size = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
    if (size < 0) {
        return Error::from_errno(errno, "readlink(/proc/self/exe)");
    }
    const std::string self(buffer.data(), static_cast<std::size_t>(size));
    return self.substr(0, self.rfind('/') + 1) + "cellkeep-sandbox";
}

Result<UniqueFd> write_plan(const Plan& plan) {
    const auto bytes = encode_plan(plan);
    if (!bytes) {
        return Error(
            ErrorCode::kLimitExceeded, "sandbox policy: too large to hand to the launcher");
    }
    UniqueFd file(::memfd_create("cellkeep-plan", MFD_CLOEXEC));
    if (!file) {
        return Error::from_errno(errno, "memfd_create");
    }
    BOOST_OUTCOME_TRY(write_all(file.get(), *bytes));
    return file;
}

/// A copy with a high number, so that placing one descriptor cannot overwrite another.
Result<UniqueFd> move_up(const UniqueFd& fd) {
    UniqueFd high(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstSafeFd));
    if (!high) {
        return Error::from_errno(errno, "fcntl(F_DUPFD_CLOEXEC)");
    }
    return high;
}

/// posix_spawn(3): vfork semantics, so the server's memory is neither copied nor seen; no
/// environment; signals as at boot.
Result<pid_t> spawn(
    const std::string& path,
    const UniqueFd& control,
    const UniqueFd& events,
    const UniqueFd& plan) {
    BOOST_OUTCOME_TRY(const auto high_control, move_up(control));
    BOOST_OUTCOME_TRY(const auto high_events, move_up(events));
    BOOST_OUTCOME_TRY(const auto high_plan, move_up(plan));
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t all;
    int error = ::posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return Error::from_errno(error, "posix_spawn_file_actions_init");
    }
    error = ::posix_spawnattr_init(&attributes);
    if (error != 0) {
        // Ignored: the first failure is the one to report.
        (void)::posix_spawn_file_actions_destroy(&actions);
        return Error::from_errno(error, "posix_spawnattr_init");
    }
    // Ignored: neither fails on a valid set (sigsetops(3)).
    (void)::sigemptyset(&none);
    (void)::sigfillset(&all);
    const std::array steps{
        ::posix_spawnattr_setsigmask(&attributes, &none),
        ::posix_spawnattr_setsigdefault(&attributes, &all),
        ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF),
        ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0),
        ::posix_spawn_file_actions_adddup2(&actions, 0, 1),
        ::posix_spawn_file_actions_adddup2(&actions, 0, 2),
        ::posix_spawn_file_actions_adddup2(&actions, high_control.get(), kLauncherControlFd),
        ::posix_spawn_file_actions_adddup2(&actions, high_events.get(), kLauncherEventsFd),
        ::posix_spawn_file_actions_adddup2(&actions, high_plan.get(), kLauncherPlanFd),
        ::posix_spawn_file_actions_addclosefrom_np(&actions, kLauncherPlanFd + 1),
    };
    for (const int step : steps) {
        error = error != 0 ? error : step;
    }
    pid_t pid = -1;
    if (error == 0) {
        std::string name = "cellkeep-sandbox";
        const std::array<char*, 2> argv{name.data(), nullptr};
        const std::array<char*, 1> no_variable{nullptr};
        char* const* env = no_variable.data();
#if defined(CELLKEEP_MUTANTS)
        env = ::environ;  // layer_switch.hpp
#endif
        error = ::posix_spawn(&pid, path.c_str(), &actions, &attributes, argv.data(), env);
    }
    // Ignored: both only free memory.
    (void)::posix_spawn_file_actions_destroy(&actions);
    (void)::posix_spawnattr_destroy(&attributes);
    if (error != 0) {
        return Error::from_errno(error, "exec(" + path + ")")
            .with_hint("install cellkeep-sandbox beside the cellkeep program");
    }
    return pid;
}

Status wait_readable(int fd, std::chrono::steady_clock::time_point deadline) {
    while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        pollfd watched{fd, POLLIN, 0};
        const int ready =
            left.count() <= 0 ? 0 : ::poll(&watched, 1, static_cast<int>(left.count()));
        if (ready > 0) {
            return ok();
        }
        if (ready == 0) {
            return Error(ErrorCode::kTimeout, "the sandbox did not start in time");
        }
        if (errno != EINTR) {
            return Error::from_errno(errno, "poll");
        }
    }
}

/// The path, link or file of the plan that the step was at.
std::string object_of(const Plan& plan, const SetupMessage& message) {
    const auto at = [&](const auto& list, auto name) {
        return message.index < list.size() ? " " + name(list[message.index]) : std::string();
    };
    switch (message.step) {
        case SetupStep::kCloneReadOnlyPath:
            return at(plan.read_only, [](const PlanReadOnlyPath& path) { return path.source; });
        case SetupStep::kMountReadOnlyPath:
            return at(plan.read_only, [](const PlanReadOnlyPath& path) { return path.target; });
        case SetupStep::kMountTmpfs:
            return at(plan.tmpfs, [](const PlanTmpfs& mount) { return mount.target; });
        case SetupStep::kMakeLink:
            return at(plan.links, [](const PlanLink& link) { return link.path; });
        case SetupStep::kWriteFile:
            return at(plan.files, [](const PlanFile& file) { return file.path; });
        case SetupStep::kJoinCgroup:
            return at(plan.cgroup_procs, [](const std::string& path) { return path; });
        default:
            return {};
    }
}

Error failure_of(const Plan& plan, const SetupMessage& message) {
    const std::string step = step_name(message.step) + object_of(plan, message);
    const std::string control = step_control(message.step);
    const bool missing_path = message.step == SetupStep::kCloneReadOnlyPath;
    if (control.empty() || missing_path) {
        return Error::from_errno(message.error, step);
    }
    const Error reason = Error::from_errno(message.error, step);
    std::string hint = fix_for(control, message.error);
    if (is_waivable(control)) {
        hint += "; or accept it with --allow-degraded=" + control;
    }
    return Error(ErrorCode::kUnavailable, "control " + control + ": " + reason.message())
        .with_hint(std::move(hint));
}

/// Takes setup messages until pid 1 is ready or someone failed.
Status await_ready(
    const Plan& plan,
    Launched& launched,
    LaunchFailure* failure,
    std::chrono::steady_clock::time_point deadline) {
    while (true) {
        SetupMessage message;
        Error problem(ErrorCode::kSystem, "the sandbox ended while it was being made");
        const auto waited = wait_readable(launched.control.get(), deadline);
        auto received = waited.has_value() ? receive_with_fds(
                                                 launched.control.get(),
                                                 std::as_writable_bytes(std::span(&message, 1)))
                                           : Result<ReceivedMessage>(waited.error());
        if (waited.has_error()) {
            problem = waited.error();
        } else if (received.has_value() && received.value().bytes == sizeof(message)) {
            auto& fds = received.value().fds;
            if (message.kind == SetupMessageKind::kLaunched && fds.size() == 1) {
                launched.pidfd = std::move(fds[0]);
                continue;
            }
            if (message.kind == SetupMessageKind::kReady && fds.size() == 1) {
                launched.workspace = std::move(fds[0]);
                launched.report = message.report;
                return ok();
            }
            problem = failure_of(plan, message);
            if (failure != nullptr) {
                *failure = {message.step, message.error, message.report};
            }
        }
        return problem;
    }
}

/// Takes away what a failed launch has made: the launcher first, so that nothing more is made.
void clear_away(const UniqueFd& launcher, Launched& launched) {
    // Ignored, here and below: the first failure is the one to report. A process that the kernel
    // holds dies with its SIGKILL when it is let go.
    (void)kill_and_reap(launcher, kReapPatience).has_value();
    while (!launched.pidfd) {
        // It may have told of pid 1 since the last look.
        SetupMessage message;
        auto received = receive_with_fds(
            launched.control.get(), std::as_writable_bytes(std::span(&message, 1)));
        if (received.has_error() || received.value().bytes != sizeof(message)) {
            return;
        }
        if (message.kind == SetupMessageKind::kLaunched && received.value().fds.size() == 1) {
            launched.pidfd = std::move(received.value().fds[0]);
        }
    }
    if (kill_and_reap(launched.pidfd, kReapPatience).has_error()) {
        leave_behind({std::move(launched.pidfd), {}});
    }
}

/// A launcher that has done its work ends at once; one that does not is killed.
void reap_launcher(const UniqueFd& launcher, std::chrono::steady_clock::time_point deadline) {
    // Ignored: kill_and_reap() is what counts, and a launcher that even outlives that has made its
    // sandbox all the same.
    (void)wait_readable(launcher.get(), deadline).has_value();
    (void)kill_and_reap(launcher, kReapPatience).has_value();
}

}  // namespace

Result<Launched> launch(const Plan& plan, const std::string& launcher, LaunchFailure* failure) {
    if (failure != nullptr) {
        failure->report.outcome.fill(kControlNotReached);
    }
    BOOST_OUTCOME_TRY(const auto path, find_launcher(launcher));
    BOOST_OUTCOME_TRY(const auto plan_file, write_plan(plan));
    BOOST_OUTCOME_TRY(auto control, make_socket_pair(SOCK_SEQPACKET));
    BOOST_OUTCOME_TRY(auto events, make_socket_pair(SOCK_SEQPACKET));
    BOOST_OUTCOME_TRY(set_nonblocking(events.first.get()));
    // A pid 1 that does not read must not hold the server up.
    BOOST_OUTCOME_TRY(set_nonblocking(control.first.get()));
    const auto deadline = std::chrono::steady_clock::now() + kLaunchPatience;
    BOOST_OUTCOME_TRY(const auto pid, spawn(path, control.second, events.second, plan_file));
    // From here on only the launcher and pid 1 hold the far ends, so their death is an end of file.
    control.second.reset();
    events.second.reset();
    Launched launched;
    launched.control = std::move(control.first);
    launched.events = std::move(events.first);
    // ESRCH: the server ignores SIGCHLD, and the launcher has ended and been reaped by the kernel.
    const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!handle && errno != ESRCH) {
        const Error problem = Error::from_errno(errno, "pidfd_open");
        // Ignored, both: it may have ended in the meantime; it is not reaped, so the pid is still
        // its own. What it has made ends with it: nobody holds the far end of its sockets.
        (void)::kill(pid, SIGKILL);
        (void)::waitpid(pid, nullptr, 0);
        return problem;
    }
    const auto ready = await_ready(plan, launched, failure, deadline);
    if (ready.has_error()) {
        clear_away(handle, launched);
        return ready.error();
    }
    reap_launcher(handle, deadline);
    return launched;
}

Status kill_and_reap(const UniqueFd& pidfd, std::chrono::milliseconds patience) {
    if (!pidfd) {
        return ok();
    }
    if (::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0) < 0 && errno != ESRCH) {
        return Error::from_errno(errno, "pidfd_send_signal");
    }
    const auto deadline = std::chrono::steady_clock::now() + patience;
    if (const auto ended = wait_readable(pidfd.get(), deadline); ended.has_error()) {
        return Error(ErrorCode::kTimeout, "the sandbox's processes did not end in time");
    }
    siginfo_t info{};
    while (::waitid(P_PIDFD, static_cast<id_t>(pidfd.get()), &info, WEXITED) < 0) {
        if (errno == ECHILD) {
            return ok();  // The server ignores SIGCHLD and the kernel has reaped it.
        }
        if (errno != EINTR) {
            return Error::from_errno(errno, "waitid");
        }
    }
    return ok();
}

}  // namespace cellkeep::sandbox
