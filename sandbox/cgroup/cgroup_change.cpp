// SPDX-License-Identifier: Apache-2.0
//
// What changes in the control groups of a session that lives: stricter limits, a memory peak that
// begins anew, whether it is frozen.
#include "protocol/support/syscall.hpp"
#include "sandbox/cgroup/cgroup.hpp"
#include "sandbox/cgroup/cgroup_v2.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace cellkeep::sandbox {

namespace {

Error not_limited(const char* what) {
    return {
        ErrorCode::kUnavailable,
        std::string(what) + ": the host gives the server no cgroup to limit it with"};
}

}  // namespace

std::string cpu_quota_for(double cores) {
    const auto quota = std::llround(cores * kCpuPeriodMicroseconds);
    return std::to_string(std::max<long long>(quota, 1000));  // the kernel's minimum is 1 ms
}

Status SessionCgroup::change_memory(std::uint64_t bytes) {
    // cgroup v2 would kill to get there (cgroup-v2.rst, memory.max); v1 says EBUSY.
    const std::uint64_t used = usage().memory_bytes;
    if (used > bytes) {
        return Error(
            ErrorCode::kConflict, "the session uses " + std::to_string(used) + " bytes of memory");
    }
    const std::string value = std::to_string(bytes);
    if (memory_v2_) {
        return write_control_file(memory_ + "/memory.max", value);
    }
    // The sum of memory and swap may not be below memory alone: on the way down it comes second, on
    // the way back up first.
    const std::string alone = memory_ + "/memory.limit_in_bytes";
    const std::string both = memory_ + "/memory.memsw.limit_in_bytes";
    const bool swaps = ::access(both.c_str(), F_OK) == 0;
    Status changed = write_control_file(alone, value);
    if (changed.has_error() && swaps && write_control_file(both, value).has_value()) {
        return write_control_file(alone, value);
    }
    BOOST_OUTCOME_TRY(std::move(changed));
    return swaps ? write_control_file(both, value) : Status(ok());
}

Status SessionCgroup::change_processes(std::uint32_t processes) {
    // Pid 1 counts. More than that live on; none is added (pids.rst).
    return write_control_file(pids_ + "/pids.max", std::to_string(processes + 1));
}

Status SessionCgroup::change(const LimitsChange& wanted) {
    // All that can be known beforehand, so that a refusal leaves nothing half changed.
    if (wanted.memory_bytes && memory_.empty()) {
        return not_limited("memory");
    }
    if (wanted.processes && pids_.empty()) {
        return not_limited("processes");
    }
    if (wanted.cpu_cores && cpu_.empty()) {
        return not_limited("cpu");
    }
    if (wanted.memory_bytes) {
        BOOST_OUTCOME_TRY(change_memory(*wanted.memory_bytes));
    }
    if (wanted.processes) {
        BOOST_OUTCOME_TRY(change_processes(*wanted.processes));
    }
    if (wanted.cpu_cores) {
        const std::string before = std::exchange(cpu_quota_, cpu_quota_for(*wanted.cpu_cores));
        if (auto changed = restore_cpu_limit(); changed.has_error()) {
            cpu_quota_ = before;
            return changed;
        }
    }
    return ok();
}

bool SessionCgroup::restart_memory_peak() {
    if (memory_.empty()) {
        return false;
    }
    if (!memory_v2_) {
        if (!peak_) {
            const std::string path = memory_ + "/memory.max_usage_in_bytes";
            peak_.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        }
        return peak_ && ::pwrite(peak_.get(), "0", 1, 0) == 1;
    }
    if (!peak_) {
        // Since Linux 6.12 a written descriptor has a peak of its own (cgroup-v2.rst, memory.peak);
        // before, the file cannot be written.
        peak_.reset(::open((memory_ + "/memory.peak").c_str(), O_RDWR | O_CLOEXEC));
    }
    constexpr std::string_view kAnything = "reset";
    return peak_ && ::pwrite(peak_.get(), kAnything.data(), kAnything.size(), 0) > 0;
}

std::uint64_t SessionCgroup::memory_peak() const {
    UniqueFd whole;
    if (!peak_) {
        const char* name = memory_v2_ ? "/memory.peak" : "/memory.max_usage_in_bytes";
        whole.reset(::open((memory_ + name).c_str(), O_RDONLY | O_CLOEXEC));
    }
    std::array<char, 32> text{};
    const ssize_t got = ::pread(peak_ ? peak_.get() : whole.get(), text.data(), text.size(), 0);
    std::uint64_t bytes = 0;
    if (got > 0) {
        // What is no number leaves 0: not known.
        (void)std::from_chars(text.data(), text.data() + got, bytes);
    }
    return bytes;
}

Status SessionCgroup::freeze(std::chrono::milliseconds patience) {
    // Nothing counts for a while, and many may be frozen.
    for (CounterFile* file : {&cpu_time_file_, &oom_kills_file_, &process_refusals_file_}) {
        file->close();
    }
    group_cpu_files_.clear();
    if (!unified_.empty()) {
        BOOST_OUTCOME_TRY(write_control_file(unified_ + "/cgroup.freeze", "1"));
        return wait_for_cgroup_event(unified_, "frozen 1", patience);
    }
    if (!freezer_.empty()) {
        return write_control_file(freezer_ + "/freezer.state", "FROZEN");
    }
    return Error(
        ErrorCode::kUnavailable, "freeze: the host gives the server no cgroup to do it with");
}

Status SessionCgroup::thaw() {
    if (!unified_.empty()) {
        return write_control_file(unified_ + "/cgroup.freeze", "0");
    }
    if (!freezer_.empty()) {
        return write_control_file(freezer_ + "/freezer.state", "THAWED");
    }
    return Error(
        ErrorCode::kUnavailable, "thaw: the host gives the server no cgroup to do it with");
}

}  // namespace cellkeep::sandbox
