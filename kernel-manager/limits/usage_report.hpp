// SPDX-License-Identifier: Apache-2.0
//
// What a session says about its use of CPU and memory: the content of a usage_reply, whose fields
// are ipykernel's. It says nothing of the host. Not thread-safe.
#pragma once

#include "kernel-manager/limits/limits.hpp"
#include "sandbox/sandbox.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <optional>

namespace cellkeep::session {

class UsageReport {
 public:
    using Time = std::chrono::steady_clock::time_point;

    /// now: from when on the first report counts CPU time.
    explicit UsageReport(Time now) : seen_at_(now) {}

    /// usage: nullopt where there is no cgroup to ask; the report then has the limits only. CPU use
    /// is in percent of one core since the report before.
    nlohmann::json make(
        const SessionLimits& limits, const std::optional<sandbox::Usage>& usage, Time now);

 private:
    Time seen_at_;
    std::chrono::microseconds seen_cpu_{0};
};

}  // namespace cellkeep::session
