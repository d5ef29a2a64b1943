// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/cgroup.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/cgroup_v2.hpp"
#include "sandbox/cgroup/leftovers.hpp"
#include "sandbox/cgroup/server_cgroup.hpp"
#include "sandbox/policy/host_mode.hpp"
#include "sandbox/shared/layer_switch.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <utility>

namespace cellkeep::sandbox {

namespace {

constexpr std::size_t kControlFileBytesMax = 1UL << 16U;
constexpr SessionCgroup::Uncounted kSwapUncounted{
    "what is swapped out is not limited", "turn swap off, or boot with swapaccount=1"};
constexpr SessionCgroup::Uncounted kSocketsUncounted{
    "the buffers of sockets are not limited", "use cgroup v2"};
/// A pid 1 that has just been reaped may be in its cgroup for a moment more.
constexpr std::chrono::milliseconds kDropPatience(50);

Status make_directory(const std::string& path) {
    if (::mkdir(path.c_str(), 0755) < 0 && errno != EEXIST) {
        return Error::from_errno(errno, "mkdir(" + path + ")");
    }
    return ok();
}

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

std::uint64_t read_number(const std::string& path) {
    const auto text = read_file(path, kControlFileBytesMax);
    std::uint64_t value = 0;
    if (text.has_value()) {
        const char* end = text.value().data() + text.value().size();
        if (std::from_chars(text.value().data(), end, value).ec != std::errc()) {
            return 0;
        }
    }
    return value;
}

std::uint64_t read_keyed(const std::string& path, std::string_view key) {
    const auto text = read_file(path, kControlFileBytesMax);
    return text.has_value() ? keyed_number(text.value(), key) : 0;
}

/// More than the heading (proc_swaps(5)); what cannot be read may hold anything.
bool host_has_swap() {
    const auto text = read_file("/proc/swaps", kControlFileBytesMax);
    return text.has_error() || std::count(text.value().begin(), text.value().end(), '\n') > 1;
}

}  // namespace

SessionCgroup::SessionCgroup(SessionCgroup&& other) noexcept = default;

SessionCgroup::~SessionCgroup() {
    // Ignored: whoever wants to know calls destroy().
    (void)destroy(kDropPatience).has_value();
    std::reverse(directories_.begin(), directories_.end());  // in the order of removal
    leave_behind({UniqueFd(), std::move(directories_)});
}

/// True if it worked; otherwise remembers why for the control's detail.
bool SessionCgroup::note(const char* control, const Status& status) {
    if (status.has_error()) {
        failures_.try_emplace(control, status.error().message());
        return false;
    }
    return true;
}

Status SessionCgroup::make_session_directory(const std::string& base, const std::string& session) {
    BOOST_OUTCOME_TRY(const auto server, server_cgroup_name());
    const std::string parent = base + "/" + server;
    const std::string path = parent + "/" + session;
    if (std::find(directories_.begin(), directories_.end(), path) != directories_.end()) {
        return ok();
    }
    int error = ENOENT;  // also when another thread, with the last session, takes the parent away
    for (int tries_left = 100; error == ENOENT && tries_left > 0; --tries_left) {
        BOOST_OUTCOME_TRY(make_directory(parent));
        error = ::mkdir(path.c_str(), 0755) < 0 ? errno : 0;
    }
    if (error != 0) {
        (void)::rmdir(parent.c_str());  // Ignored: it may hold other sessions.
        return Error::from_errno(error, "mkdir(" + path + ")");
    }
    directories_.push_back(path);
    return ok();
}

void SessionCgroup::limit_v2(
    const ResourceLimits& limits, const std::set<std::string, std::less<>>& controllers) {
    if (controllers.contains("memory") &&
        note(
            "memory_limit",
            write_control_file(unified_ + "/memory.max", std::to_string(limits.memory_bytes)))) {
        // No file: the kernel does not account for swap (before 6.1, swapaccount=0).
        const std::string swap = unified_ + "/memory.swap.max";
        memory_v2_ = !exists(swap) || note("memory_limit", write_control_file(swap, "0"));
        memory_ = memory_v2_ ? unified_ : "";
        if (memory_v2_ && !exists(swap) && host_has_swap()) {
            uncounted_ = kSwapUncounted;
        }
    }
    if (controllers.contains("pids") &&
        note(
            "process_limit",
            write_control_file(unified_ + "/pids.max", std::to_string(limits.processes + 1)))) {
        pids_v2_ = true;
        pids_ = unified_;
    }
    if (controllers.contains("cpu") &&
        note(
            "cpu_limit",
            write_control_file(
                unified_ + "/cpu.max",
                cpu_quota_ + " " + std::to_string(kCpuPeriodMicroseconds)))) {
        cpu_v2_ = true;
        cpu_ = unified_;
    }
}

void SessionCgroup::set_up_v2(
    const ResourceLimits& limits, const CgroupLayout& layout, const std::string& session) {
    const auto server = server_cgroup_name();
    if (layout.unified.empty() || server.has_error()) {
        return;
    }
    const V2Place place = find_v2_place(layout, server.value(), run_mode() == RunMode::kRoot);
    const std::string parent = place.base + "/" + server.value();
    if (!note("freeze", make_session_directory(place.base, session))) {
        failures_.try_emplace("memory_limit", failures_["freeze"]);
        failures_.try_emplace("process_limit", failures_["freeze"]);
        failures_.try_emplace("cpu_limit", failures_["freeze"]);
        failures_.try_emplace("cpu_accounting", failures_["freeze"]);
        return;
    }
    unified_ = parent + "/" + session;
    std::set<std::string, std::less<>> controllers;
    for (const std::string& controller : place.controllers) {
        const std::string control = (controller == "pids" ? "process" : controller) + "_limit";
        const auto enabled =
            write_control_file(parent + "/cgroup.subtree_control", "+" + controller);
        if (note(control.c_str(), enabled)) {
            controllers.insert(controller);
        }
    }
    limit_v2(limits, controllers);
    can_kill_ = exists(unified_ + "/cgroup.kill");
    if (can_kill_ && !layer_removed("worker_cgroup")) {
        make_worker_leaf();
    }
}

/// Without controllers, so that the session's directory may hold pid 1 beside it (cgroups(7), "no
/// internal processes").
void SessionCgroup::make_worker_leaf() {
    const std::string leaf = unified_ + "/workers";
    if (::mkdir(leaf.c_str(), 0755) < 0) {
        return;  // Pid 1 ends the workers all the same.
    }
    workers_ = leaf;
    directories_.push_back(leaf);
}

std::string SessionCgroup::make_v1(
    const CgroupLayout& layout, const char* controller, const std::string& session) {
    const auto base = layout.v1.find(controller);
    const auto server = server_cgroup_name();
    if (base == layout.v1.end() || server.has_error()) {
        return {};
    }
    const std::string control = controller == std::string_view("pids")      ? "process_limit"
                                : controller == std::string_view("cpuacct") ? "cpu_accounting"
                                : controller == std::string_view("freezer")
                                    ? "freeze"
                                    : std::string(controller) + "_limit";
    if (!note(control.c_str(), make_session_directory(base->second, session))) {
        return {};
    }
    return base->second + "/" + server.value() + "/" + session;
}

/// v2 charges the buffers of sockets with all the rest. v1 has a counter of their own, and it
/// counts nothing before it has a limit (cgroup-v1/memory.rst, section 2.7.3).
void SessionCgroup::set_up_v1(
    const ResourceLimits& limits, const CgroupLayout& layout, const std::string& session) {
    if (memory_.empty() && !layer_removed("memory_limit")) {
        memory_ = make_v1(layout, "memory", session);
        const std::string bytes = std::to_string(limits.memory_bytes);
        const std::string swap = memory_ + "/memory.memsw.limit_in_bytes";
        // memsw (memory and swap together) after the plain limit: it may not be below it.
        if (!memory_.empty() &&
            (!note("memory_limit", write_control_file(memory_ + "/memory.limit_in_bytes", bytes)) ||
             (exists(swap) && !note("memory_limit", write_control_file(swap, bytes))))) {
            memory_.clear();
        }
        if (!memory_.empty() && !exists(swap) && host_has_swap()) {
            uncounted_ = kSwapUncounted;
        }
        if (!memory_.empty() && !layer_removed("socket_memory") &&
            write_control_file(
                memory_ + "/memory.kmem.tcp.limit_in_bytes",
                std::to_string(limits.memory_bytes / kSocketMemoryShare))
                .has_error()) {
            uncounted_ = kSocketsUncounted;
        }
    }
    if (pids_.empty() && !layer_removed("process_limit")) {
        pids_ = make_v1(layout, "pids", session);
        if (!pids_.empty() &&
            !note(
                "process_limit",
                write_control_file(pids_ + "/pids.max", std::to_string(limits.processes + 1)))) {
            pids_.clear();
        }
    }
    if (cpu_.empty() && !layer_removed("cpu_limit")) {
        cpu_ = make_v1(layout, "cpu", session);
        if (!cpu_.empty() &&
            (!note(
                 "cpu_limit",
                 write_control_file(
                     cpu_ + "/cpu.cfs_period_us", std::to_string(kCpuPeriodMicroseconds))) ||
             !note("cpu_limit", write_control_file(cpu_ + "/cpu.cfs_quota_us", cpu_quota_)))) {
            cpu_.clear();
        }
    }
    if (!cpu_v2_) {
        cpuacct_ = make_v1(layout, "cpuacct", session);
    }
    if (unified_.empty()) {
        freezer_ = make_v1(layout, "freezer", session);
    }
}

Result<SessionCgroup> SessionCgroup::create(
    const ResourceLimits& limits, const std::string& session) {
    SessionCgroup cgroup;
    cgroup.cpu_quota_ = cpu_quota_for(limits.cpu_cores);
    (void)clear_leftovers();  // Ignored: what is left is tried again.
    BOOST_OUTCOME_TRY(const auto layout, read_cgroup_layout());
    cgroup.set_up_v2(limits, layout, session);
    cgroup.set_up_v1(limits, layout, session);
    cgroup.describe_controls();
    return cgroup;
}

std::vector<std::string> SessionCgroup::procs_files() const {
    std::vector<std::string> files;
    for (const std::string& directory : directories_) {
        if (directory != workers_) {
            files.push_back(directory + "/cgroup.procs");
        }
    }
    return files;
}

std::string SessionCgroup::worker_procs_file() const {
    return workers_.empty() ? std::string() : workers_ + "/cgroup.procs";
}

CgroupUsage SessionCgroup::counters() const {
    CgroupUsage usage;
    if (!cpuacct_.empty()) {
        const auto nanoseconds = cpu_time_file_.find_number(cpuacct_ + "/cpuacct.usage");
        usage.cpu_time = std::chrono::microseconds(nanoseconds.value_or(0) / 1000);
        usage.cpu_lost = !nanoseconds.has_value();
    } else if (!unified_.empty()) {
        const auto used = cpu_time_file_.find_keyed(unified_ + "/cpu.stat", "usage_usec");
        usage.cpu_time = std::chrono::microseconds(used.value_or(0));
        usage.cpu_lost = !used.has_value();
    }
    if (!memory_.empty()) {
        const char* name = memory_v2_ ? "/memory.events" : "/memory.oom_control";
        usage.oom_kills = oom_kills_file_.keyed(memory_ + name, "oom_kill");
    }
    if (!pids_.empty()) {
        usage.process_refusals = process_refusals_file_.keyed(pids_ + "/pids.events", "max");
    }
    return usage;
}

CgroupUsage SessionCgroup::usage() const {
    CgroupUsage usage = counters();
    if (!memory_.empty()) {
        usage.memory_peak_bytes = memory_peak();
    }
    if (!memory_.empty() && memory_v2_) {
        usage.memory_bytes = read_number(memory_ + "/memory.current");
        usage.memory_refusals = read_keyed(memory_ + "/memory.events", "max");
    } else if (!memory_.empty()) {
        usage.memory_bytes = read_number(memory_ + "/memory.usage_in_bytes");
        // With both limits the same, memory and swap together are charged first.
        usage.memory_refusals = read_number(memory_ + "/memory.failcnt") +
                                read_number(memory_ + "/memory.memsw.failcnt");
    }
    if (!pids_.empty()) {
        usage.processes = read_number(pids_ + "/pids.current");
    }
    return usage;
}

std::vector<std::string> SessionCgroup::frozen_procs_files() const {
    const std::string& directory = unified_.empty() ? freezer_ : unified_;
    if (directory.empty()) {
        return {};
    }
    std::vector<std::string> files = {directory + "/cgroup.procs"};
    if (!workers_.empty()) {
        files.push_back(worker_procs_file());
    }
    for (const auto& [group, leaf] : groups_) {
        files.push_back(leaf + "/cgroup.procs");
    }
    return files;
}

Status SessionCgroup::lift_cpu_limit() {
    if (cpu_.empty()) {
        return ok();
    }
    return cpu_v2_ ? write_control_file(cpu_ + "/cpu.max", "max")
                   : write_control_file(cpu_ + "/cpu.cfs_quota_us", "-1");
}

Status SessionCgroup::restore_cpu_limit() {
    if (cpu_.empty()) {
        return ok();
    }
    // v1's period was never touched; v2 keeps its own when only the quota is written.
    return write_control_file(cpu_ + (cpu_v2_ ? "/cpu.max" : "/cpu.cfs_quota_us"), cpu_quota_);
}

Status SessionCgroup::kill() {
    return can_kill_ ? write_control_file(unified_ + "/cgroup.kill", "1") : Status(ok());
}

Status SessionCgroup::destroy(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    if (!unified_.empty() && !directories_.empty()) {
        // Ignored: rmdir below is the judge; this only spares it from being tried too early.
        (void)wait_for_cgroup_event(unified_, "populated 0", patience).has_value();
    }
    while (!directories_.empty()) {
        const std::string& path = directories_.back();
        if (const int error = remove_session_directory(path); error != 0) {
            if (error != EBUSY || std::chrono::steady_clock::now() >= deadline) {
                return Error::from_errno(error, "rmdir(" + path + ")");
            }
            // v1 has no notice of a cgroup that became empty: ask again, at most until the
            // deadline.
            (void)::sched_yield();  // Ignored: always succeeds on Linux.
            continue;
        }
        directories_.pop_back();
    }
    return ok();
}

}  // namespace cellkeep::sandbox
