// SPDX-License-Identifier: Apache-2.0
//
// A session's control groups: one directory per hierarchy, beneath the server's own, as
// cellkeep-<server pid>-<server start time>/<session>. Limits, counters, freeze and kill by cgroup
// v2 where its controllers are, by v1 where they are not. Owns the directories: destroy() or the
// destructor removes them; what the kernel still holds then goes to the leftovers. Never moves or
// kills anything outside them.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/cgroup/cgroup_layout.hpp"
#include "sandbox/cgroup/counter_file.hpp"
#include "sandbox/policy/isolation.hpp"
#include "sandbox/policy/limits_change.hpp"
#include "sandbox/policy/policy.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
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

/// The kernel's default period of cpu.max.
inline constexpr int kCpuPeriodMicroseconds = 100'000;
/// On cgroup v1, the buffers of a session's sockets may hold this part of its memory besides it.
inline constexpr std::uint64_t kSocketMemoryShare = 8;
/// Microseconds of CPU time in each period, as both versions write it.
std::string cpu_quota_for(double cores);

class SessionCgroup {
 public:
    /// What the memory limit does not count on this host, and what would change that.
    struct Uncounted {
        const char* what = nullptr;
        const char* fix = nullptr;
    };

    /// Makes the directories and writes the limits as far as the host lets it; controls() tells how
    /// far.
    static Result<SessionCgroup> create(const ResourceLimits& limits, const std::string& session);

    SessionCgroup(SessionCgroup&& other) noexcept;
    SessionCgroup& operator=(SessionCgroup&&) = delete;
    SessionCgroup(const SessionCgroup&) = delete;
    SessionCgroup& operator=(const SessionCgroup&) = delete;
    ~SessionCgroup();

    /// memory_limit, process_limit, cpu_limit, cpu_accounting, freeze: applied, or absent with a
    /// fix.
    const std::vector<Control>& controls() const { return controls_; }
    /// The cgroup.procs files that take pid 1's pid before anything runs.
    std::vector<std::string> procs_files() const;
    /// The cgroup.procs file that every worker enters, or empty. The limits are not here but on the
    /// directory above, which pid 1 is in, too: this one is for kill_workers() alone.
    std::string worker_procs_file() const;
    /// The cgroup.procs file of a group's own leaf, which is made at the first call; invalid where
    /// there is none and for group 0, whose leaf is worker_procs_file()'s.
    Result<UniqueFd> open_group(std::uint32_t group);
    /// The cgroup.events file of a group's leaf; invalid if it has none.
    UniqueFd open_group_events(std::uint32_t group) const;
    /// SIGKILL to every process of a group's leaf; nothing if it has none.
    Status kill_group(std::uint32_t group);
    /// kUnavailable if it has no leaf, kSystem if its counter cannot be read.
    Result<std::chrono::microseconds> group_cpu_time(std::uint32_t group) const;
    /// v2's cgroup.kill is there.
    bool can_kill() const { return can_kill_; }

    CgroupUsage usage() const;
    /// What is asked at every cell, and no more: cpu_time, oom_kills and process_refusals; the rest
    /// is 0. Three system calls; the files stay open.
    CgroupUsage counters() const;
    /// The highest memory, in bytes.
    std::uint64_t memory_peak() const;
    /// Limits that become stricter, in this order: kConflict if more memory is in use already,
    /// kUnavailable if there is no such control.
    Status change(const LimitsChange& wanted);
    /// From now on usage() tells the highest memory since now. False: the kernel cannot.
    bool restart_memory_peak();
    /// The cgroup.procs files that together name every process that freeze() freezes.
    std::vector<std::string> frozen_procs_files() const;
    /// kTimeout: it takes longer, and is in force when it comes.
    Status freeze(std::chrono::milliseconds patience);
    Status thaw();
    /// No more rationing of CPU time, so that processes can end: one over its quota waits for it.
    Status lift_cpu_limit();
    /// The rationing of the session's limits again.
    Status restore_cpu_limit();
    /// SIGKILL to every process, those of this moment's forks too; nothing if can_kill() is false.
    Status kill();
    /// SIGKILL to every process but pid 1; nothing if there is no worker_procs_file().
    Status kill_workers();
    /// After the last process is gone: waits for the kernel to notice, at most patience.
    Status destroy(std::chrono::milliseconds patience);

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
    Status make_session_directory(const std::string& base, const std::string& session);
    void make_worker_leaf();
    /// Empty if it has none.
    std::string group_leaf(std::uint32_t group) const;
    bool note(const char* control, const Status& status);
    Status change_memory(std::uint64_t bytes);
    Status change_processes(std::uint32_t processes);
    void describe_controls();
    std::string unified_;                          // this session's v2 directory, or empty
    std::string workers_;                          // the leaf beneath it, of group 0, or empty
    std::map<std::uint32_t, std::string> groups_;  // the leaves of the other groups
    std::string memory_;  // the directory whose controller is in force, or empty
    std::string pids_;
    std::string cpu_;
    std::string cpu_quota_;  // as both versions write it
    std::string cpuacct_;
    std::string freezer_;  // v1; used when unified_ is empty
    UniqueFd peak_;        // v2: a peak of our own; v1: the file, kept open
    mutable CounterFile cpu_time_file_;
    mutable std::map<std::uint32_t, CounterFile> group_cpu_files_;
    mutable CounterFile oom_kills_file_;
    mutable CounterFile process_refusals_file_;
    bool memory_v2_ = false;
    bool pids_v2_ = false;
    bool cpu_v2_ = false;
    bool can_kill_ = false;
    Uncounted uncounted_{};                 // of memory; nothing, if what is null
    std::vector<std::string> directories_;  // every one made, each once, a leaf after its parent
    std::vector<Control> controls_;
    std::map<std::string, std::string, std::less<>> failures_;  // control to what did not work
};

}  // namespace cellkeep::sandbox
