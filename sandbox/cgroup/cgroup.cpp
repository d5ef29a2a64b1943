// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/cgroup.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/cgroup_v2.hpp"
#include "sandbox/cgroup/leftovers.hpp"
#include "sandbox/cgroup/server_cgroup.hpp"
#include "sandbox/policy/host_mode.hpp"
#include "sandbox/shared/layer_switch.hpp"

#include <string_view>
#include <utility>

namespace cellkeep::sandbox {

namespace {

Error not_limited(const char* what) {
    return {
        ErrorCode::kUnavailable,
        std::string(what) + ": the host gives the server no cgroup to limit it with"};
}

/// The control of the isolation report that a v1 controller stands for.
std::string control_of_v1(std::string_view controller) {
    return controller == "pids"      ? "process_limit"
           : controller == "cpuacct" ? "cpu_accounting"
           : controller == "freezer" ? "freeze"
                                     : std::string(controller) + "_limit";
}

}  // namespace

void SessionCgroup::limit_v2(
    const ResourceLimits& limits, const std::set<std::string, std::less<>>& controllers) {
    if (controllers.contains("memory")) {
        memory_ =
            failures_.take("memory_limit", MemoryLimit::apply_v2(unified_, limits.memory_bytes))
                .value_or(MemoryLimit());
    }
    if (controllers.contains("pids")) {
        processes_ = failures_
                         .take(
                             "process_limit",
                             ProcessLimit::apply(CgroupVersion::kV2, unified_, limits.processes))
                         .value_or(ProcessLimit());
    }
    if (controllers.contains("cpu")) {
        cpu_ =
            failures_
                .take("cpu_limit", CpuLimit::apply(CgroupVersion::kV2, unified_, limits.cpu_cores))
                .value_or(CpuLimit());
    }
}

void SessionCgroup::set_up_v2(
    const ResourceLimits& limits, const CgroupLayout& layout, const std::string& session) {
    const auto server = server_cgroup_name();
    if (layout.unified.empty() || server.has_error()) {
        return;
    }
    const V2Place place = find_v2_place(layout, server.value(), run_mode() == RunMode::kRoot);
    auto made = directories_.make(place.base, server.value(), session);
    if (made.has_error()) {
        for (const char* control :
             {"freeze", "memory_limit", "process_limit", "cpu_limit", "cpu_accounting"}) {
            (void)failures_.note(control, made.error());  // Ignored: the report has it.
        }
        return;
    }
    unified_ = std::move(made).value();
    const std::string parent = place.base + "/" + server.value();
    std::set<std::string, std::less<>> controllers;
    for (const std::string& controller : place.controllers) {
        const std::string control = (controller == "pids" ? "process" : controller) + "_limit";
        if (failures_.note(
                control,
                write_control_file(parent + "/cgroup.subtree_control", "+" + controller))) {
            controllers.insert(controller);
        }
    }
    limit_v2(limits, controllers);
    cpu_time_ = CpuTime(CgroupVersion::kV2, unified_);
    freezer_ = Freezer(CgroupVersion::kV2, unified_);
    can_kill_ = has_control_file(unified_ + "/cgroup.kill");
    if (can_kill_ && !layer_removed("worker_cgroup")) {
        workers_ = WorkerLeaves::make(unified_, directories_);
    }
}

std::string SessionCgroup::make_v1(
    const CgroupLayout& layout, const char* controller, const std::string& session) {
    const auto base = layout.v1.find(controller);
    const auto server = server_cgroup_name();
    if (base == layout.v1.end() || server.has_error()) {
        return {};
    }
    return failures_
        .take(control_of_v1(controller), directories_.make(base->second, server.value(), session))
        .value_or(std::string());
}

void SessionCgroup::set_up_v1(
    const ResourceLimits& limits, const CgroupLayout& layout, const std::string& session) {
    if (!memory_.in_force() && !layer_removed("memory_limit")) {
        if (const auto path = make_v1(layout, "memory", session); !path.empty()) {
            memory_ =
                failures_.take("memory_limit", MemoryLimit::apply_v1(path, limits.memory_bytes))
                    .value_or(MemoryLimit());
        }
    }
    if (!processes_.in_force() && !layer_removed("process_limit")) {
        if (const auto path = make_v1(layout, "pids", session); !path.empty()) {
            processes_ = failures_
                             .take(
                                 "process_limit",
                                 ProcessLimit::apply(CgroupVersion::kV1, path, limits.processes))
                             .value_or(ProcessLimit());
        }
    }
    if (!cpu_.in_force() && !layer_removed("cpu_limit")) {
        if (const auto path = make_v1(layout, "cpu", session); !path.empty()) {
            cpu_ =
                failures_
                    .take("cpu_limit", CpuLimit::apply(CgroupVersion::kV1, path, limits.cpu_cores))
                    .value_or(CpuLimit());
        }
    }
    if (!cpu_.is_v2()) {
        if (auto path = make_v1(layout, "cpuacct", session); !path.empty()) {
            cpu_time_ = CpuTime(CgroupVersion::kV1, std::move(path));
        }
    }
    if (unified_.empty()) {
        if (auto path = make_v1(layout, "freezer", session); !path.empty()) {
            freezer_ = Freezer(CgroupVersion::kV1, std::move(path));
        }
    }
}

void SessionCgroup::describe_controls() {
    const std::string fix = run_mode() == RunMode::kRoot
                                ? "make the cgroup file system writable for the server"
                                : "start the server in a delegated cgroup (systemd-run --user "
                                  "--scope -p Delegate=yes …), with cpu among the controllers that "
                                  "user@.service delegates, or as root";
    const auto add = [&](const char* name, bool applied, const char* mechanism) {
        applied = applied || layer_removed(name);  // A mutant claims what it has not.
        Control control{
            name, applied ? ControlState::kApplied : ControlState::kAbsent, mechanism, {}, {}};
        if (!applied) {
            control.mechanism.clear();
            control.detail =
                failures_.find(name).value_or("no cgroup controller for it where the server runs");
            control.fix = fix;
        }
        controls_.push_back(std::move(control));
    };
    add("memory_limit", memory_.in_force(), memory_.mechanism());
    if (memory_.uncounted().what != nullptr) {
        controls_.back().state = ControlState::kDegraded;
        controls_.back().detail = memory_.uncounted().what;
        controls_.back().fix = memory_.uncounted().fix;
    }
    add("process_limit", processes_.in_force(), processes_.mechanism());
    add("cpu_limit", cpu_.in_force(), cpu_.mechanism());
    add("cpu_accounting", cpu_time_.exists(), cpu_time_.mechanism());
    add("freeze", freezer_.works(), freezer_.mechanism());
}

Result<SessionCgroup> SessionCgroup::create(
    const ResourceLimits& limits, const std::string& session) {
    SessionCgroup cgroup;
    (void)clear_leftovers();  // Ignored: what is left is tried again.
    BOOST_OUTCOME_TRY(const auto layout, read_cgroup_layout());
    cgroup.set_up_v2(limits, layout, session);
    cgroup.set_up_v1(limits, layout, session);
    cgroup.describe_controls();
    return cgroup;
}

std::vector<std::string> SessionCgroup::procs_files() const {
    const std::string workers = worker_procs_file();
    std::vector<std::string> files;
    for (const std::string& directory : directories_.paths()) {
        std::string file = directory + "/cgroup.procs";
        if (file != workers) {
            files.push_back(std::move(file));
        }
    }
    return files;
}

CgroupUsage SessionCgroup::cpu_counter() const {
    CgroupUsage usage;
    if (cpu_time_.exists()) {
        const auto used = cpu_time_.read();
        usage.cpu_time = used.value_or(std::chrono::microseconds(0));
        usage.cpu_lost = !used.has_value();
    }
    return usage;
}

CgroupUsage SessionCgroup::counters() const {
    CgroupUsage usage = cpu_counter();
    usage.oom_kills = memory_.oom_kills();
    usage.process_refusals = processes_.refusals();
    return usage;
}

CgroupUsage SessionCgroup::usage() const {
    CgroupUsage usage = counters();
    usage.memory_peak_bytes = memory_.peak();
    usage.memory_bytes = memory_.bytes();
    usage.memory_refusals = memory_.refusals();
    usage.processes = processes_.processes();
    return usage;
}

std::vector<std::string> SessionCgroup::frozen_procs_files() const {
    if (freezer_.directory().empty()) {
        return {};
    }
    std::vector<std::string> files = workers_.procs_files();
    files.insert(files.begin(), freezer_.directory() + "/cgroup.procs");
    return files;
}

Status SessionCgroup::change(const LimitsChange& wanted) {
    // All that can be known beforehand, so that a refusal leaves nothing half changed.
    if (wanted.memory_bytes && !memory_.in_force()) {
        return not_limited("memory");
    }
    if (wanted.processes && !processes_.in_force()) {
        return not_limited("processes");
    }
    if (wanted.cpu_cores && !cpu_.in_force()) {
        return not_limited("cpu");
    }
    if (wanted.memory_bytes) {
        BOOST_OUTCOME_TRY(memory_.change(*wanted.memory_bytes));
    }
    if (wanted.processes) {
        BOOST_OUTCOME_TRY(processes_.change(*wanted.processes));
    }
    if (wanted.cpu_cores) {
        BOOST_OUTCOME_TRY(cpu_.change(*wanted.cpu_cores));
    }
    return ok();
}

Status SessionCgroup::freeze(std::chrono::milliseconds patience) {
    memory_.close_counter();
    processes_.close_counter();
    cpu_time_.close();
    workers_.close_counters();
    return freezer_.freeze(patience);
}

Status SessionCgroup::kill() {
    return can_kill_ ? write_control_file(unified_ + "/cgroup.kill", "1") : Status(ok());
}

}  // namespace cellkeep::sandbox
