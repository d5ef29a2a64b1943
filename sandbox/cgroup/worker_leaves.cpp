// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/worker_leaves.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/cgroup_kill.hpp"

#include <fcntl.h>

#include <utility>

namespace cellkeep::sandbox {

WorkerLeaves WorkerLeaves::make(const std::string& session, SessionDirectories& directories) {
    WorkerLeaves leaves;
    const std::string path = session + "/workers";
    if (directories.make_leaf(path).has_value()) {
        leaves.base_ = path;
        leaves.add(0, path);
    }
    return leaves;
}

WorkerLeaves WorkerLeaves::take_over(const std::map<WorkerGroup, std::string>& paths) {
    WorkerLeaves leaves;
    for (const auto& [group, path] : paths) {
        leaves.add(group, path);
        // All others have a number behind it.
        if (leaves.base_.empty() || path.size() < leaves.base_.size()) {
            leaves.base_ = path;
        }
    }
    return leaves;
}

std::map<WorkerGroup, std::string> WorkerLeaves::paths() const {
    std::map<WorkerGroup, std::string> paths;
    for (const auto& [group, leaf] : leaves_) {
        paths.emplace(group, leaf.path);
    }
    return paths;
}

const WorkerLeaves::Leaf* WorkerLeaves::find(WorkerGroup group) const {
    const auto found = leaves_.find(group);
    return found == leaves_.end() ? nullptr : &found->second;
}

void WorkerLeaves::add(WorkerGroup group, const std::string& path) {
    leaves_.emplace(group, Leaf{path, CpuTime(CgroupVersion::kV2, path)});
}

std::string WorkerLeaves::procs_file() const {
    return base_.empty() ? std::string() : base_ + "/cgroup.procs";
}

std::string WorkerLeaves::procs_file_of(WorkerGroup group) const {
    const Leaf* leaf = find(group);
    return leaf == nullptr ? std::string() : leaf->path + "/cgroup.procs";
}

Status WorkerLeaves::exchange(WorkerGroup one, WorkerGroup other) {
    const auto first = leaves_.find(one);
    const auto second = leaves_.find(other);
    if (first == leaves_.end() || second == leaves_.end()) {
        return Error(ErrorCode::kUnavailable, "cgroup: a group of workers has none of its own");
    }
    std::swap(first->second, second->second);
    return ok();
}

std::vector<std::string> WorkerLeaves::procs_files() const {
    std::vector<std::string> files;
    for (const auto& [group, leaf] : leaves_) {
        files.push_back(leaf.path + "/cgroup.procs");
    }
    return files;
}

Result<UniqueFd> WorkerLeaves::open_procs(WorkerGroup group, SessionDirectories& directories) {
    const Leaf* first = find(0);
    if (first == nullptr || (group == 0 && first->path == base_)) {
        return UniqueFd();
    }
    if (find(group) == nullptr) {
        const std::string path = base_ + "-" + std::to_string(group);
        BOOST_OUTCOME_TRY(directories.make_leaf(path));
        add(group, path);
    }
    return open_file(find(group)->path + "/cgroup.procs", O_WRONLY);
}

UniqueFd WorkerLeaves::open_events(WorkerGroup group) const {
    const Leaf* leaf = find(group);
    if (leaf == nullptr) {
        return {};
    }
    auto events = open_file(leaf->path + "/cgroup.events", O_RDONLY);
    return events.has_value() ? std::move(events).value() : UniqueFd();
}

Status WorkerLeaves::kill(WorkerGroup group) {
    const Leaf* leaf = find(group);
    if (leaf == nullptr) {
        return ok();
    }
    BOOST_OUTCOME_TRY(const auto kill, open_file(leaf->path + "/cgroup.kill", O_WRONLY));
    auto procs = open_file(leaf->path + "/cgroup.procs", O_RDONLY);
    // Without a list cgroup.kill does what it can.
    return kill_processes(kill, procs.has_value() ? std::move(procs).value() : UniqueFd());
}

Result<HaltedLeaf> WorkerLeaves::halt(WorkerGroup group) const {
    const Leaf* leaf = find(group);
    if (leaf == nullptr) {
        return Error(ErrorCode::kUnavailable, "halt: the group has no cgroup of its own");
    }
    return HaltedLeaf::begin(leaf->path);
}

Status WorkerLeaves::kill_all() {
    Status killed = ok();
    for (const auto& [group, leaf] : leaves_) {
        Status one = kill(group);
        killed = killed.has_error() ? std::move(killed) : std::move(one);
    }
    return killed;
}

Result<std::chrono::microseconds> WorkerLeaves::cpu_time(WorkerGroup group) const {
    const Leaf* leaf = find(group);
    if (leaf == nullptr) {
        return Error(ErrorCode::kUnavailable, "cpu time: the group has no cgroup of its own");
    }
    const auto used = leaf->cpu_time.read();
    if (!used.has_value()) {
        return Error(
            ErrorCode::kSystem, "read(" + leaf->cpu_time.path() + "): there is no usage_usec");
    }
    return *used;
}

void WorkerLeaves::close_counters() {
    for (auto& [group, leaf] : leaves_) {
        leaf.cpu_time.close();
    }
}

}  // namespace cellkeep::sandbox
