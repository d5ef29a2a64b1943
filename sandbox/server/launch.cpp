// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/launch.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/leftovers.hpp"
#include "sandbox/policy/controls.hpp"
#include "sandbox/server/branch_launcher.hpp"
#include "sandbox/server/launcher_process.hpp"
#include "sandbox/server/zygote.hpp"
#include "sandbox/shared/branch_namespaces.hpp"
#include "sandbox/shared/plan_codec.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>
#include <vector>

namespace cellkeep::sandbox {

namespace {

constexpr std::chrono::milliseconds kReapPatience(2000);

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

/// The path, link or file of the plan that the step was at.
std::string object_of(const Plan& plan, const SetupMessage& message) {
    const auto at = [&](const auto& list, auto name) {
        return message.index < list.size() ? " " + name(list[message.index]) : std::string();
    };
    switch (message.step) {
        case SetupStep::kCloneReadOnlyPath:
        case SetupStep::kOpenInput:
            return at(plan.read_only, [](const PlanReadOnlyPath& path) { return path.source; });
        case SetupStep::kLayReadOnlyPath:
            return at(plan.read_only, [](const PlanReadOnlyPath& path) {
                return path.source + " (" + path.over + ")";
            });
        case SetupStep::kMountReadOnlyPath:
        case SetupStep::kMountInput:
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
    // Of a path that is not there the host is not to blame.
    const bool missing_path =
        (message.step == SetupStep::kCloneReadOnlyPath ||
         message.step == SetupStep::kLayReadOnlyPath) &&
        (message.error == ENOENT || message.error == ENOTDIR || message.error == EACCES);
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

/// Takes setup messages until pid 1 is ready or a step has failed.
Status await_ready(
    const Plan& plan,
    Launched& launched,
    LaunchFailure* failure,
    std::chrono::steady_clock::time_point deadline) {
    while (true) {
        SetupMessage message;
        Error problem(ErrorCode::kSystem, "the sandbox ended while it was being made");
        const auto waited = wait_until_readable(launched.control.get(), deadline);
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
            if (message.kind == SetupMessageKind::kListener && fds.size() == 1) {
                launched.listener = std::move(fds[0]);
                continue;
            }
            if (message.kind == SetupMessageKind::kNamespaces &&
                fds.size() == kBranchNamespaceCount) {
                launched.namespaces = std::move(fds);
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
        // It may have reported pid 1 since the last look.
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
    (void)wait_until_readable(launcher.get(), deadline).has_value();
    (void)kill_and_reap(launcher, kReapPatience).has_value();
}

/// What a launch needs on both sides.
struct Prepared {
    UniqueFd plan_file;
    UniqueFd far_control;
    UniqueFd far_events;
    Launched launched;
    std::chrono::steady_clock::time_point deadline;
};

Result<Prepared> prepare(const Plan& plan, LaunchFailure* failure) {
    if (failure != nullptr) {
        failure->report.outcome.fill(kControlNotReached);
    }
    Prepared prepared;
    BOOST_OUTCOME_TRY(prepared.plan_file, write_plan(plan));
    BOOST_OUTCOME_TRY(auto control, make_socket_pair(SOCK_SEQPACKET));
    BOOST_OUTCOME_TRY(auto events, make_socket_pair(SOCK_SEQPACKET));
    BOOST_OUTCOME_TRY(set_nonblocking(events.first.get()));
    // A pid 1 that does not read must not hold the server up.
    BOOST_OUTCOME_TRY(set_nonblocking(control.first.get()));
    prepared.launched.control = std::move(control.first);
    prepared.launched.events = std::move(events.first);
    prepared.far_control = std::move(control.second);
    prepared.far_events = std::move(events.second);
    prepared.deadline = std::chrono::steady_clock::now() + kLaunchPatience;
    return prepared;
}

/// From here on only the launcher and pid 1 hold the far ends, so their death is an end of file.
void let_go(Prepared& prepared) {
    prepared.far_control.reset();
    prepared.far_events.reset();
}

/// Opened by the server, whom the kernel asks whether a process may move (cgroups(7)).
Result<std::vector<UniqueFd>> open_cgroups(const Plan& plan) {
    std::vector<std::string> paths = plan.cgroup_procs;
    if (!plan.worker_procs.empty()) {
        paths.push_back(plan.worker_procs);
    }
    if (paths.size() > kCgroupFilesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "more than " + std::to_string(kCgroupFilesMax) + " cgroup files");
    }
    std::vector<UniqueFd> files;
    for (const std::string& path : paths) {
        UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        if (!file) {
            return Error::from_errno(errno, "open(" + path + ")");
        }
        files.push_back(std::move(file));
    }
    return files;
}

/// In the order of LaunchRequest.
std::vector<int> request_fds(const Prepared& prepared, const std::vector<UniqueFd>& cgroups) {
    std::vector<int> fds{
        prepared.far_control.get(), prepared.far_events.get(), prepared.plan_file.get()};
    for (const UniqueFd& file : cgroups) {
        fds.push_back(file.get());
    }
    return fds;
}

Result<Launched> launch_with(
    const Plan& plan,
    const std::string& launcher,
    Prepared prepared,
    std::span<const int> more,
    LaunchFailure* failure) {
    BOOST_OUTCOME_TRY(const auto path, find_launcher(launcher));
    std::vector<int> fds{
        prepared.far_control.get(), prepared.far_events.get(), prepared.plan_file.get()};
    fds.insert(fds.end(), more.begin(), more.end());
    BOOST_OUTCOME_TRY(const auto pid, spawn_launcher(path, {}, fds));
    let_go(prepared);
    BOOST_OUTCOME_TRY(const auto handle, open_launcher(pid));
    const auto ready = await_ready(plan, prepared.launched, failure, prepared.deadline);
    if (ready.has_error()) {
        clear_away(handle, prepared.launched);
        return ready.error();
    }
    reap_launcher(handle, prepared.deadline);
    return std::move(prepared.launched);
}

}  // namespace

Result<Launched> launch(
    const Plan& plan,
    const std::string& launcher,
    const UniqueFd& network,
    LaunchFailure* failure) {
    BOOST_OUTCOME_TRY(auto prepared, prepare(plan, failure));
    std::vector<int> more;
    if (plan.enter_network) {
        more.push_back(network.get());
    }
    return launch_with(plan, launcher, std::move(prepared), more, failure);
}

Result<Launched> launch(
    const Plan& plan,
    BranchLauncher& launcher,
    const std::string& program,
    LaunchFailure* failure) {
    BOOST_OUTCOME_TRY(auto prepared, prepare(plan, failure));
    BOOST_OUTCOME_TRY(const auto cgroups, open_cgroups(plan));
    Status made = launcher.with_room(program, [&]() -> Status {
        prepared.deadline = std::chrono::steady_clock::now() + kLaunchPatience;
        BOOST_OUTCOME_TRY(launcher.request(request_fds(prepared, cgroups)));
        let_go(prepared);
        return await_ready(plan, prepared.launched, failure, prepared.deadline);
    });
    if (made.has_value() && prepared.launched.namespaces.size() != kBranchNamespaceCount) {
        made = Error(ErrorCode::kSystem, "a branch's pid 1 did not tell of its namespaces");
    }
    if (made.has_error()) {
        let_go(prepared);
        clear_away(UniqueFd(), prepared.launched);
        return made.error();
    }
    return std::move(prepared.launched);
}

Result<Launched> launch(const Plan& plan, const Zygote& zygote, LaunchFailure* failure) {
    BOOST_OUTCOME_TRY(auto prepared, prepare(plan, failure));
    BOOST_OUTCOME_TRY(const auto cgroups, open_cgroups(plan));
    BOOST_OUTCOME_TRY(zygote.request(request_fds(prepared, cgroups)));
    let_go(prepared);
    const auto ready = await_ready(plan, prepared.launched, failure, prepared.deadline);
    if (ready.has_error()) {
        // The zygote ends its launcher, whose sockets have no far end any more.
        clear_away(UniqueFd(), prepared.launched);
        return ready.error();
    }
    return std::move(prepared.launched);
}

}  // namespace cellkeep::sandbox
