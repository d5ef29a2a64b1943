// SPDX-License-Identifier: Apache-2.0
//
// The rationing of CPU time of one cgroup: cpu.max (cgroup-v2.rst, "CPU") or cpu.cfs_quota_us
// (scheduler/sched-bwc.rst). Knows the directory by its path and makes nothing. Not thread-safe.
#pragma once

#include "protocol/support/result.hpp"
#include "sandbox/cgroup/control_file.hpp"

#include <string>

namespace cellkeep::sandbox {

/// The kernel's default period of cpu.max.
inline constexpr int kCpuPeriodMicroseconds = 100'000;
/// Microseconds of CPU time in each period, as both versions write it. At least the kernel's
/// minimum of 1 ms.
std::string cpu_quota_for(double cores);

class CpuLimit {
 public:
    /// No limit: nothing is in force, and lift() and restore() do nothing.
    CpuLimit() = default;
    /// Errors are those of the writes.
    static Result<CpuLimit> apply(
        CgroupVersion version, const std::string& directory, double cores);

    /// One that is in force already, and its quota. An empty directory: none is.
    static CpuLimit take_over(std::string directory, CgroupVersion version, std::string quota);

    bool in_force() const { return !directory_.empty(); }
    const std::string& directory() const { return directory_; }
    CgroupVersion version() const { return version_; }
    const std::string& quota() const { return quota_; }
    bool is_v2() const { return in_force() && version_ == CgroupVersion::kV2; }
    /// For the isolation report.
    const char* mechanism() const { return is_v2() ? "cgroup v2 cpu" : "cgroup v1 cpu"; }

    /// After a failure the old quota is what restore() writes. Precondition: in_force().
    Status change(double cores);
    /// No more rationing, so that processes can end: one over its quota waits for it.
    Status lift();
    /// The rationing of the last apply() or change() again.
    Status restore();

 private:
    std::string directory_;
    CgroupVersion version_ = CgroupVersion::kV2;
    std::string quota_;
};

}  // namespace cellkeep::sandbox
