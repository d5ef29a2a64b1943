// SPDX-License-Identifier: Apache-2.0
//
// A session's control groups: one directory per hierarchy, beneath the server's own, as
// cellkeep-<server pid>-<server start time>/<session>. Limits, counters, freeze and kill by cgroup
// v2 where its controllers are, by v1 where they are not. Puts the parts together, each of which
// has a header of its own; the parts own nothing but SessionDirectories, which owns the
// directories. Never moves or kills anything outside them. Not thread-safe.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/cgroup/cgroup_layout.hpp"
#include "sandbox/cgroup/control_failures.hpp"
#include "sandbox/cgroup/cpu_limit.hpp"
#include "sandbox/cgroup/cpu_time.hpp"
#include "sandbox/cgroup/freezer.hpp"
#include "sandbox/cgroup/memory_limit.hpp"
#include "sandbox/cgroup/passed_cgroup.hpp"
#include "sandbox/cgroup/process_limit.hpp"
#include "sandbox/cgroup/session_directories.hpp"
#include "sandbox/cgroup/worker_leaves.hpp"
#include "sandbox/policy/isolation.hpp"
#include "sandbox/policy/limits_change.hpp"
#include "sandbox/policy/policy.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::sandbox {

struct CgroupUsage {
    std::chrono::microseconds cpu_time{0};
    bool cpu_lost = false;  // its counter is there and cannot be read: cpu_time is 0
    std::uint64_t memory_bytes = 0;
    std::uint64_t memory_peak_bytes = 0;
    std::uint64_t oom_kills = 0;
    std::uint64_t processes = 0;
    std::uint64_t process_refusals = 0;
    std::uint64_t memory_refusals = 0;
};

class SessionCgroup {
 public:
    /// Makes the directories and writes the limits as far as the host lets it; controls() tells how
    /// far.
    static Result<SessionCgroup> create(const ResourceLimits& limits, const std::string& session);

    /// What another program in this process has left of one, and what is left to another; the
    /// directories are no longer this object's then.
    static SessionCgroup take_over(PassedCgroup passed);
    PassedCgroup pass_on();

    /// memory_limit, process_limit, cpu_limit, cpu_accounting, freeze: applied, or absent with a
    /// fix.
    const std::vector<Control>& controls() const { return controls_; }
    /// The cgroup.procs files that take pid 1's pid before anything runs.
    std::vector<std::string> procs_files() const;
    /// The cgroup.procs file that every worker enters, or empty. The limits are not here but on the
    /// directory above, which pid 1 is in, too.
    std::string worker_procs_file() const { return workers_.procs_file(); }
    /// The leaves of the groups of workers, as in WorkerLeaves.
    Result<UniqueFd> open_group(WorkerGroup group) {
        return workers_.open_procs(group, directories_);
    }
    std::string group_procs_file(WorkerGroup group) const { return workers_.procs_file_of(group); }
    Status exchange_groups(WorkerGroup one, WorkerGroup other) {
        return workers_.exchange(one, other);
    }
    UniqueFd open_group_events(WorkerGroup group) const { return workers_.open_events(group); }
    Status kill_group(WorkerGroup group) { return workers_.kill(group); }
    Result<HaltedLeaf> halt_group(WorkerGroup group) const { return workers_.halt(group); }
    Result<std::chrono::microseconds> group_cpu_time(WorkerGroup group) const {
        return workers_.cpu_time(group);
    }
    /// v2's cgroup.kill is there.
    bool can_kill() const { return can_kill_; }

    CgroupUsage usage() const;
    /// What is asked at every cell, and no more: cpu_time, oom_kills and process_refusals; the rest
    /// is 0. Three system calls; the files stay open.
    CgroupUsage counters() const;
    /// Of it, cpu_time alone: one system call.
    CgroupUsage cpu_counter() const;
    /// The highest memory, in bytes.
    std::uint64_t memory_peak() const { return memory_.peak(); }
    /// Limits that become stricter, in this order: kConflict if more memory is in use already,
    /// kUnavailable if there is no such control.
    Status change(const LimitsChange& wanted);
    /// From now on usage() returns the highest memory since now. False: the kernel cannot.
    bool restart_memory_peak() { return memory_.restart_peak(); }
    /// The cgroup.procs files that together name every process that freeze() freezes.
    std::vector<std::string> frozen_procs_files() const;
    /// kTimeout: it takes longer, and is in force when it comes. Closes the files of the counters,
    /// because nothing counts for a while, and many sessions may be frozen.
    Status freeze(std::chrono::milliseconds patience);
    Status thaw() { return freezer_.thaw(); }
    /// As in CpuLimit.
    Status lift_cpu_limit() { return cpu_.lift(); }
    Status restore_cpu_limit() { return cpu_.restore(); }
    /// SIGKILL to every process, those of this moment's forks too; nothing if can_kill() is false.
    Status kill();
    /// SIGKILL to every process but pid 1; nothing if there is no worker_procs_file().
    Status kill_workers() { return workers_.kill_all(); }
    /// After the last process is gone: waits for the kernel to notice, at most patience.
    Status destroy(std::chrono::milliseconds patience) { return directories_.remove(patience); }

 private:
    SessionCgroup() = default;
    void set_up_v2(
        const ResourceLimits& limits, const CgroupLayout& layout, const std::string& session);
    void limit_v2(
        const ResourceLimits& limits, const std::set<std::string, std::less<>>& controllers);
    void set_up_v1(
        const ResourceLimits& limits, const CgroupLayout& layout, const std::string& session);
    std::string make_v1(
        const CgroupLayout& layout, const char* controller, const std::string& session);
    void describe_controls();

    SessionDirectories directories_;
    std::string unified_;  // this session's v2 directory, or empty
    MemoryLimit memory_;
    ProcessLimit processes_;
    CpuLimit cpu_;
    CpuTime cpu_time_;
    Freezer freezer_;
    WorkerLeaves workers_;
    bool can_kill_ = false;
    ControlFailures failures_;
    std::vector<Control> controls_;
};

}  // namespace cellkeep::sandbox
