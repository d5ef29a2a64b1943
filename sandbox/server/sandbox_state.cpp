// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/sandbox_state.hpp"

#include "sandbox/cgroup/leftovers.hpp"
#include "sandbox/server/pid1_exit.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cellkeep::sandbox {

Status SandboxState::prepare_kill() {
    if (ending) {
        return Error(ErrorCode::kConflict, "kill_workers: the sandbox is destroyed");
    }
    if (frozen) {
        BOOST_OUTCOME_TRY(cgroup.thaw());
        frozen = false;
    }
    return ok();
}

Status SandboxState::kill_workers() {
    BOOST_OUTCOME_TRY(prepare_kill());
    // A task dies when it next runs, and so does pid 1's work, which has the session's quota.
    // Ignored: then it takes longer, and patience is the judge.
    (void)cgroup.lift_cpu_limit().has_value();
    // Two means: the kernel's, which needs nothing of pid 1's and catches every fork, and pid 1's
    // own, which also reaps.
    // Ignored: then pid 1 does it alone.
    (void)cgroup.kill_workers().has_value();
    return ok();
}

void SandboxState::kill_pid1() const {
    if (pid1.pidfd) {
        // Ignored: ESRCH means that pid 1 has ended.
        (void)::syscall(SYS_pidfd_send_signal, pid1.pidfd.get(), SIGKILL, nullptr, 0);
    }
}

Status SandboxState::give_sleepers_cgroup(WorkerGroup group) {
    if (sleepers_among != group) {
        BOOST_OUTCOME_TRY(cgroup.exchange_groups(group, kSleepingGroup));
        sleepers_among = group;
    }
    return ok();
}

std::vector<std::string> SandboxState::outer_procs_files() const {
    const std::string workers = cgroup.worker_procs_file();
    std::vector<std::string> files = cgroup.procs_files();
    // Above the workers' own.
    std::erase_if(files, [&workers](const std::string& file) {
        return workers.starts_with(file.substr(0, file.rfind('/') + 1));
    });
    return files;
}

Status SandboxState::retire() {
    BOOST_OUTCOME_TRY(kill_workers());
    // Ignored: without a cgroup that counts processes all the rounds below are what there is.
    (void)cgroup.change({.memory_bytes = {}, .processes = 1, .cpu_cores = {}}).has_value();
    return kill_all_but(cgroup.procs_files(), pid1.pidfd);
}

Status SandboxState::kill() {
    ending = true;
    Status result = ok();
    if (frozen) {
        // A frozen v1 task does not die until it is thawed (freezer-subsystem.rst).
        result = cgroup.thaw();
        frozen = result.has_error();
    }
    // A task dies when it next runs, and one over its quota may have to wait long for that.
    // Ignored: then it takes longer, and reaping tells.
    (void)cgroup.lift_cpu_limit().has_value();
    // cgroup.kill besides the namespace's own death: two means, and quicker for many processes.
    Status killed = cgroup.kill();
    return result.has_error() ? result : killed;
}

void SandboxState::note_death(std::string why) {
    death_told = true;
    death = given_up ? "pid 1 did not answer a start and was killed" : std::move(why);
}

Error SandboxState::fail(Error why) {
    note_death(why.message());
    return why;
}

Status SandboxState::destroy(std::chrono::milliseconds patience) {
    if (destroyed) {
        return ok();
    }
    Status result = kill();
    auto reaped = kill_and_reap(pid1.pidfd, patience);
    if (reaped.has_value() && !death.empty()) {
        death += describe_exit(pid1.pidfd);
    }
    // Only the pidfd is needed to try again.
    auto pidfd = reaped.has_value() ? UniqueFd() : std::move(pid1.pidfd);
    pid1 = Launched{};
    channel.close();
    pid1.pidfd = std::move(pidfd);
    auto removed = reaped.has_value() ? cgroup.destroy(patience) : Status(ok());
    destroyed = reaped.has_value() && removed.has_value();
    for (auto* step : {&reaped, &removed}) {
        if (result.has_value() && step->has_error()) {
            result = std::move(*step);
        }
    }
    return result;
}

void SandboxState::abandon() {
    const auto patience = ending ? std::chrono::milliseconds(0) : kDestroyPatience;
    // Ignored: an owner that needs the result calls destroy() (sandbox.hpp).
    (void)destroy(patience).has_value();
    leave_behind({std::move(pid1.pidfd), {}});  // The cgroup's own destructor does the rest.
}

Usage to_usage(const CgroupUsage& now) {
    return {
        now.cpu_time,
        now.cpu_lost,
        now.memory_bytes,
        now.memory_peak_bytes,
        now.oom_kills,
        now.processes,
        now.process_refusals,
        now.memory_refusals};
}

}  // namespace cellkeep::sandbox
