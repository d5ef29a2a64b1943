// SPDX-License-Identifier: Apache-2.0
//
// The leaves beneath a session's cgroup, one for each group of its workers.
#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/cgroup.hpp"
#include "sandbox/cgroup/cgroup_v2.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

namespace cellkeep::sandbox {

std::string SessionCgroup::group_leaf(std::uint32_t group) const {
    if (group == 0) {
        return workers_;
    }
    const auto found = groups_.find(group);
    return found == groups_.end() ? std::string() : found->second;
}

Result<UniqueFd> SessionCgroup::open_group(std::uint32_t group) {
    if (group == 0 || workers_.empty()) {
        return UniqueFd();
    }
    if (!groups_.contains(group)) {
        const std::string leaf = workers_ + "-" + std::to_string(group);
        if (::mkdir(leaf.c_str(), 0755) < 0) {
            return Error::from_errno(errno, "mkdir(" + leaf + ")");
        }
        directories_.push_back(leaf);
        groups_.emplace(group, leaf);
    }
    return open_file(group_leaf(group) + "/cgroup.procs", O_WRONLY);
}

UniqueFd SessionCgroup::open_group_events(std::uint32_t group) const {
    const std::string leaf = group_leaf(group);
    if (leaf.empty()) {
        return {};
    }
    auto events = open_file(leaf + "/cgroup.events", O_RDONLY);
    return events.has_value() ? std::move(events).value() : UniqueFd();
}

Status SessionCgroup::kill_group(std::uint32_t group) {
    const std::string leaf = group_leaf(group);
    return leaf.empty() ? Status(ok()) : write_control_file(leaf + "/cgroup.kill", "1");
}

Status SessionCgroup::kill_workers() {
    Status killed = kill_group(0);
    for (const auto& [group, leaf] : groups_) {
        Status one = kill_group(group);
        killed = killed.has_error() ? std::move(killed) : std::move(one);
    }
    return killed;
}

Result<std::chrono::microseconds> SessionCgroup::group_cpu_time(std::uint32_t group) const {
    const std::string leaf = group_leaf(group);
    if (leaf.empty()) {
        return Error(ErrorCode::kUnavailable, "cpu time: the group has no cgroup of its own");
    }
    const auto used = group_cpu_files_[group].find_keyed(leaf + "/cpu.stat", "usage_usec");
    if (!used.has_value()) {
        return Error(ErrorCode::kSystem, "read(" + leaf + "/cpu.stat): there is no usage_usec");
    }
    return std::chrono::microseconds(*used);
}

}  // namespace cellkeep::sandbox
