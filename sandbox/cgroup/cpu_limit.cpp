// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/cpu_limit.hpp"

#include "protocol/support/syscall.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cellkeep::sandbox {

std::string cpu_quota_for(double cores) {
    const auto quota = std::llround(cores * kCpuPeriodMicroseconds);
    return std::to_string(std::max<long long>(quota, 1000));
}

Result<CpuLimit> CpuLimit::apply(
    CgroupVersion version, const std::string& directory, double cores) {
    CpuLimit limit;
    limit.directory_ = directory;
    limit.version_ = version;
    limit.quota_ = cpu_quota_for(cores);
    const std::string period = std::to_string(kCpuPeriodMicroseconds);
    if (version == CgroupVersion::kV2) {
        BOOST_OUTCOME_TRY(write_control_file(directory + "/cpu.max", limit.quota_ + " " + period));
        return limit;
    }
    BOOST_OUTCOME_TRY(write_control_file(directory + "/cpu.cfs_period_us", period));
    BOOST_OUTCOME_TRY(limit.restore());
    return limit;
}

CpuLimit CpuLimit::take_over(std::string directory, CgroupVersion version, std::string quota) {
    CpuLimit limit;
    limit.directory_ = std::move(directory);
    limit.version_ = version;
    limit.quota_ = std::move(quota);
    return limit;
}

Status CpuLimit::change(double cores) {
    std::string before = std::exchange(quota_, cpu_quota_for(cores));
    Status changed = restore();
    if (changed.has_error()) {
        quota_ = std::move(before);
    }
    return changed;
}

Status CpuLimit::lift() {
    if (!in_force()) {
        return ok();
    }
    return is_v2() ? write_control_file(directory_ + "/cpu.max", "max")
                   : write_control_file(directory_ + "/cpu.cfs_quota_us", "-1");
}

Status CpuLimit::restore() {
    if (!in_force()) {
        return ok();
    }
    // v1's period was never touched; v2 keeps its own when only the quota is written.
    return write_control_file(directory_ + (is_v2() ? "/cpu.max" : "/cpu.cfs_quota_us"), quota_);
}

}  // namespace cellkeep::sandbox
