// SPDX-License-Identifier: Apache-2.0
//
// The leaves beneath a session's v2 cgroup that its workers are in, one for each group of them
// (sandbox/shared/worker_group.hpp). Pid 1 is not in them: they are for killing workers without it,
// and for the CPU time of one group. They have no controllers, so that the session's directory may
// hold pid 1 beside them (cgroups(7), "no internal processes"). SessionDirectories owns the
// directories. Not thread-safe.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/cgroup/cpu_time.hpp"
#include "sandbox/cgroup/halted_leaf.hpp"
#include "sandbox/cgroup/session_directories.hpp"
#include "sandbox/shared/worker_group.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace cellkeep::sandbox {

class WorkerLeaves {
 public:
    /// Without leaves: nothing to enter, to kill or to count.
    WorkerLeaves() = default;
    /// Makes the leaf of group 0. Without one there are none: pid 1 ends the workers all the same.
    static WorkerLeaves make(const std::string& session, SessionDirectories& directories);

    /// Leaves that are there, by their groups.
    static WorkerLeaves take_over(const std::map<WorkerGroup, std::string>& paths);

    bool exist() const { return !leaves_.empty(); }
    std::map<WorkerGroup, std::string> paths() const;
    /// The cgroup.procs file that every worker enters that is given no other; or empty. Group 0's
    /// until an exchange().
    std::string procs_file() const;
    /// Those of all groups.
    std::vector<std::string> procs_files() const;
    /// The cgroup.procs file of a group's leaf, for writing. The leaf is made at the first call.
    /// Invalid without leaves, and for group 0 while procs_file() is its own.
    Result<UniqueFd> open_procs(WorkerGroup group, SessionDirectories& directories);
    /// The same file's path, of a leaf that is there; or empty.
    std::string procs_file_of(WorkerGroup group) const;
    /// From now on what is in the leaf of one group is of the other, and the other way round.
    /// Nothing is moved. kUnavailable if one of them has no leaf.
    Status exchange(WorkerGroup one, WorkerGroup other);
    /// The cgroup.events file of a group's leaf; invalid if it has none.
    UniqueFd open_events(WorkerGroup group) const;
    /// SIGKILL to every process of a group's leaf; nothing if it has none.
    Status kill(WorkerGroup group);
    /// Of a group's leaf. kUnavailable if it has none.
    Result<HaltedLeaf> halt(WorkerGroup group) const;
    /// SIGKILL to every process of all leaves. The first error, after all have been tried.
    Status kill_all();
    /// kUnavailable if the group has no leaf, kSystem if its counter cannot be read.
    Result<std::chrono::microseconds> cpu_time(WorkerGroup group) const;
    void close_counters();

 private:
    struct Leaf {
        std::string path;
        CpuTime cpu_time;
    };
    const Leaf* find(WorkerGroup group) const;
    void add(WorkerGroup group, const std::string& path);

    std::string base_;  // the first leaf that was made, group 0's at first
    std::map<WorkerGroup, Leaf> leaves_;
};

}  // namespace cellkeep::sandbox
