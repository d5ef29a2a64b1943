// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/worker_place.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/server/idle_probe.hpp"
#include "sandbox/server/oom_order.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sstream>
#include <string>

namespace cellkeep::sandbox {

namespace {

constexpr std::size_t kGroupProcsBytesMax = 1UL << 20U;

/// False, too, if it has ended.
bool is_in(const std::string& procs_file, const UniqueFd& pidfd) {
    const auto pid = pid_of(pidfd.get());
    const auto text = read_file(procs_file, kGroupProcsBytesMax);
    if (pid.has_error() || text.has_error()) {
        return false;
    }
    std::istringstream in(text.value());
    for (pid_t one = 0; in >> one;) {
        if (one == pid.value()) {
            return true;
        }
    }
    return false;
}

}  // namespace

Result<WorkerPlace> place_worker(SandboxState& state, const WorkerSpec& spec) {
    WorkerPlace place;
    if (!spec.born_in || state.cgroup.worker_procs_file().empty()) {
        BOOST_OUTCOME_TRY(place.procs, state.cgroup.open_group(spec.group));
        place.own_cgroup = place.procs ? 1 : 0;
        return place;
    }
    place.own_cgroup = kStaysInCgroup;
    place.stays_in = spec.born_in;
    if (*spec.born_in == kSleepingGroup && spec.group != kSleepingGroup) {
        BOOST_OUTCOME_TRY(state.give_sleepers_cgroup(spec.group));
        place.stays_in = spec.group;
    }
    return place;
}

Status settle_adopted(SandboxState& state, const AskedStart& asked, const Worker& worker) {
    if (asked.stays_in && !is_in(state.cgroup.group_procs_file(*asked.stays_in), worker.pidfd)) {
        // Ignored: ESRCH means that it has ended by itself.
        (void)::syscall(SYS_pidfd_send_signal, worker.pidfd.get(), SIGKILL, nullptr, 0);
        return Error(ErrorCode::kProtocol, asked.program + " was not forked where it should be");
    }
    if (asked.stays_in && asked.group == kSleepingGroup && *asked.stays_in != kSleepingGroup) {
        state.sleepers_among = asked.stays_in;
    }
    // Ignored: without it a sleeping copy may be taken before the running process.
    (void)set_oom_place(
        worker.pidfd.get(),
        asked.group == kSleepingGroup ? OomPlace::kSleeping : OomPlace::kRunning)
        .has_value();
    return ok();
}

}  // namespace cellkeep::sandbox
