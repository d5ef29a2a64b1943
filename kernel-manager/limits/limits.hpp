// SPDX-License-Identifier: Apache-2.0
//
// What one session may consume; the defaults are the safe profile of the session API. Values only:
// sizes and processes are enforced by the sandbox, times and counts by the session.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace cellkeep::session {

/// Languages that run in one session, its own among them.
inline constexpr std::size_t kSessionLanguagesMax = 8;
/// The highest number of an interpreter beside another of its language ("python:2").
inline constexpr unsigned kInterpreterNumberMax = 99;

/// The least that a request may ask for; openapi.json says the same. Below that no interpreter
/// starts, or an answer cannot say what happened.
inline constexpr double kCpuCoresMin = 0.05;
inline constexpr std::uint64_t kMemoryMbMin = 64;
inline constexpr std::uint64_t kDiskMbMin = 1;
inline constexpr std::uint32_t kProcessesMin = 4;
inline constexpr std::uint64_t kOutputBytesMin = 256;

struct SessionLimits {
    double cpu_cores = 1.0;
    std::uint64_t memory_mb = 512;
    std::uint64_t disk_mb = 200;   // /workspace
    std::uint32_t processes = 64;  // processes and threads
    /// Per execution. A request may ask for less, never for more.
    std::chrono::milliseconds wall{30'000};
    std::chrono::milliseconds cpu{30'000};
    /// Text of one execution's answer, stdout and stderr each. More is cut in the middle and saved.
    std::uint64_t output_bytes = 1'000'000;
    /// Of the files that one execution made or changed: what is read for their digests.
    std::uint64_t artifact_bytes = 5'000'000;
    /// Budgets of the session's life, for all clients together. Without a value there is no budget.
    /// total_cpu: CPU time of all processes of the session since a client got it. total_wall: the
    /// time that its executions took. total_output_bytes: all their output. total_artifact_bytes:
    /// the size of the files that executions reported.
    std::optional<std::uint64_t> executions;
    std::optional<std::chrono::milliseconds> total_wall;
    std::optional<std::chrono::milliseconds> total_cpu;
    std::optional<std::uint64_t> total_output_bytes;
    std::optional<std::uint64_t> total_artifact_bytes;
    /// The circuit breaker opens after this many failed executions in a row (circuit_breaker.hpp).
    /// 0: never. Without a value the server's default applies.
    std::optional<std::uint32_t> consecutive_failures;
    std::chrono::seconds idle{1800};        // without activity: culled; 0: never
    std::chrono::seconds lifetime{86'400};  // since creation: culled; 0: never
};

/// The most a request may ask for; the operator may lower them.
struct LimitCeilings {
    double cpu_cores = 64.0;
    std::uint64_t memory_mb = 65'536;
    std::uint64_t disk_mb = 16'384;
    std::uint32_t processes = 4096;
    std::chrono::milliseconds wall{24LL * 3600 * 1000};
    std::chrono::milliseconds cpu{24LL * 3600 * 1000};
    std::uint64_t output_bytes = 64'000'000;
    std::uint64_t artifact_bytes = 1'000'000'000;
    std::chrono::seconds idle{7LL * 86'400};
    std::chrono::seconds lifetime{30LL * 86'400};
    std::uint32_t consecutive_failures = 1'000'000;
    bool endless = true;  // idle and lifetime may be 0
};

/// The profile of a person at a notebook, for the Jupyter front ends: room for data, no deadline on
/// a cell and no end for being idle or old, each as far as the ceilings let it.
inline SessionLimits notebook_limits(const LimitCeilings& most) {
    SessionLimits limits;
    limits.cpu_cores = std::min(2.0, most.cpu_cores);
    limits.memory_mb = std::min<std::uint64_t>(2048, most.memory_mb);
    limits.disk_mb = std::min<std::uint64_t>(1024, most.disk_mb);
    limits.processes = std::min(256U, most.processes);
    limits.wall = most.wall;
    limits.cpu = most.cpu;
    limits.output_bytes = std::min<std::uint64_t>(limits.output_bytes, most.output_bytes);
    limits.artifact_bytes = std::min<std::uint64_t>(limits.artifact_bytes, most.artifact_bytes);
    limits.idle = most.idle;
    limits.lifetime = most.lifetime;
    return limits;
}

}  // namespace cellkeep::session
