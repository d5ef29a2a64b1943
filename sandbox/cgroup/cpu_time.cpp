// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/cpu_time.hpp"

namespace cellkeep::sandbox {

std::string CpuTime::path() const {
    return directory_ + (version_ == CgroupVersion::kV2 ? "/cpu.stat" : "/cpuacct.usage");
}

std::optional<std::chrono::microseconds> CpuTime::read() const {
    const bool v2 = version_ == CgroupVersion::kV2;
    const auto number = v2 ? file_.find_keyed(path(), "usage_usec") : file_.find_number(path());
    if (!number.has_value()) {
        return std::nullopt;
    }
    return std::chrono::microseconds(v2 ? *number : *number / 1000);  // v1 counts nanoseconds
}

}  // namespace cellkeep::sandbox
