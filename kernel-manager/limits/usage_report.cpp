// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/usage_report.hpp"

#include "sandbox/policy/policy.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace cellkeep::session {

nlohmann::json UsageReport::make(
    const SessionLimits& limits, const std::optional<sandbox::Usage>& usage, Time now) {
    // "host" is what the guest sees as its machine. The real host's load and memory, and process
    // ids, are not the guest's business.
    nlohmann::json content = {
        {"status", "ok"},
        {"hostname", sandbox::Policy{}.hostname},
        {"cpu_count", std::max(1, static_cast<int>(std::ceil(limits.cpu_cores)))}};
    if (!usage.has_value()) {
        return content;
    }
    const std::chrono::duration<double> wall = now - std::exchange(seen_at_, now);
    const std::chrono::duration<double> cpu =
        usage->cpu_time - std::exchange(seen_cpu_, usage->cpu_time);
    const std::uint64_t total = limits.memory_mb << 20U;
    const std::uint64_t used = std::min(usage->memory_bytes, total);
    content["kernel_cpu"] = wall.count() > 0 ? 100.0 * cpu.count() / wall.count() : 0.0;
    content["kernel_memory"] = usage->memory_bytes;
    content["host_virtual_memory"] = {
        {"total", total},
        {"used", used},
        {"free", total - used},
        {"available", total - used},
        {"percent", 100.0 * static_cast<double>(used) / static_cast<double>(total)}};
    return content;
}

}  // namespace cellkeep::session
