// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/usage_report.hpp"

#include "tests/support/start_time.hpp"

#include <catch2/catch.hpp>

using cellkeep::sandbox::Usage;
using cellkeep::session::test::kStart;
using namespace cellkeep::session;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kMegabyte = 1ULL << 20U;

Usage usage_of(std::chrono::microseconds cpu, std::uint64_t bytes) {
    Usage usage;
    usage.cpu_time = cpu;
    usage.memory_bytes = bytes;
    return usage;
}

}  // namespace

TEST_CASE("CPU use is the share of the time since the report before", "[session][usage]") {
    UsageReport report(kStart);
    const SessionLimits limits;
    CHECK(report.make(limits, usage_of(1s, 0), kStart + 2s)["kernel_cpu"] == 50.0);
    CHECK(report.make(limits, usage_of(1s, 0), kStart + 3s)["kernel_cpu"] == 0.0);
    CHECK(report.make(limits, usage_of(5s, 0), kStart + 5s)["kernel_cpu"] == 200.0);
    CHECK(
        report.make(limits, usage_of(6s, 0), kStart + 5s)["kernel_cpu"] == 0.0);  // no time passed
}

TEST_CASE("memory is a part of the session's limit", "[session][usage]") {
    UsageReport report(kStart);
    SessionLimits limits;
    limits.memory_mb = 100;
    const auto content = report.make(limits, usage_of(0s, 25 * kMegabyte), kStart + 1s);
    CHECK(content["kernel_memory"] == 25 * kMegabyte);
    const auto& memory = content["host_virtual_memory"];
    CHECK(memory["total"] == 100 * kMegabyte);
    CHECK(memory["used"] == 25 * kMegabyte);
    CHECK(memory["available"] == 75 * kMegabyte);
    CHECK(memory["percent"] == 25.0);
    const auto over = report.make(limits, usage_of(0s, 101 * kMegabyte), kStart + 2s);
    CHECK(over["host_virtual_memory"]["free"] == 0);
}

TEST_CASE("without counters the report has the limits only", "[session][usage]") {
    UsageReport report(kStart);
    SessionLimits limits;
    limits.cpu_cores = 1.5;
    const auto content = report.make(limits, std::nullopt, kStart + 1s);
    CHECK(content["status"] == "ok");
    CHECK(content["cpu_count"] == 2);
    CHECK_FALSE(content.contains("kernel_cpu"));
    CHECK_FALSE(content.contains("host_virtual_memory"));
    limits.cpu_cores = 0.25;
    CHECK(report.make(limits, std::nullopt, kStart + 1s)["cpu_count"] == 1);
}
