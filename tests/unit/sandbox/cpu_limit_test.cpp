// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/cpu_limit.hpp"

#include "sandbox/cgroup/cpu_time.hpp"
#include "tests/unit/sandbox/fake_cgroup.hpp"

#include <filesystem>

namespace cellkeep::sandbox {
namespace {

using namespace std::chrono_literals;

TEST_CASE("cores are microseconds in each period, and never less than one millisecond") {
    CHECK(cpu_quota_for(1) == "100000");
    CHECK(cpu_quota_for(2.5) == "250000");
    CHECK(cpu_quota_for(0.0001) == "1000");
}

TEST_CASE("a CPU limit is lifted and comes back", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    SECTION("v2") {
        cgroup.offer("cpu.max");
        auto limit = CpuLimit::apply(CgroupVersion::kV2, cgroup.path(), 2);
        REQUIRE(limit.has_value());
        CHECK(limit.value().is_v2());
        CHECK(cgroup.get("cpu.max") == "200000 100000");
        cgroup.offer("cpu.max");
        CHECK(limit.value().lift().has_value());
        CHECK(cgroup.get("cpu.max") == "max");
        cgroup.offer("cpu.max");
        CHECK(limit.value().restore().has_value());
        CHECK(cgroup.get("cpu.max") == "200000");
    }
    SECTION("v1") {
        cgroup.offer("cpu.cfs_period_us");
        cgroup.offer("cpu.cfs_quota_us");
        auto limit = CpuLimit::apply(CgroupVersion::kV1, cgroup.path(), 2);
        REQUIRE(limit.has_value());
        CHECK_FALSE(limit.value().is_v2());
        CHECK(cgroup.get("cpu.cfs_period_us") == "100000");
        CHECK(cgroup.get("cpu.cfs_quota_us") == "200000");
        cgroup.offer("cpu.cfs_quota_us");
        CHECK(limit.value().lift().has_value());
        CHECK(cgroup.get("cpu.cfs_quota_us") == "-1");
        cgroup.offer("cpu.cfs_quota_us");
        CHECK(limit.value().restore().has_value());
        CHECK(cgroup.get("cpu.cfs_quota_us") == "200000");
    }
}

TEST_CASE("a CPU limit that cannot be written is an error", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    CHECK(CpuLimit::apply(CgroupVersion::kV2, cgroup.path(), 1).has_error());
    cgroup.offer("cpu.cfs_period_us");  // but no quota
    CHECK(CpuLimit::apply(CgroupVersion::kV1, cgroup.path(), 1).has_error());
    CpuLimit none;
    CHECK_FALSE(none.in_force());
    CHECK(none.lift().has_value());
    CHECK(none.restore().has_value());
}

TEST_CASE("a change of the CPU limit that fails leaves the old quota", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    cgroup.offer("cpu.max");
    auto limit = CpuLimit::apply(CgroupVersion::kV2, cgroup.path(), 2);
    REQUIRE(limit.has_value());
    REQUIRE(std::filesystem::remove(cgroup.path() + "/cpu.max"));
    CHECK(limit.value().change(1).has_error());
    cgroup.offer("cpu.max");
    CHECK(limit.value().restore().has_value());
    CHECK(cgroup.get("cpu.max") == "200000");
    cgroup.offer("cpu.max");
    CHECK(limit.value().change(1).has_value());
    CHECK(cgroup.get("cpu.max") == "100000");
}

TEST_CASE("CPU time is read in microseconds from both versions", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    const CpuTime v2(CgroupVersion::kV2, cgroup.path());
    const CpuTime v1(CgroupVersion::kV1, cgroup.path());
    CHECK_FALSE(v2.read().has_value());
    CHECK_FALSE(v1.read().has_value());
    cgroup.put("cpu.stat", "usage_usec 1234\nuser_usec 1000\n");
    cgroup.put("cpuacct.usage", "5678999\n");
    CHECK(v2.read() == 1234us);
    CHECK(v1.read() == 5678us);
    CHECK_FALSE(CpuTime().exists());
    CHECK(v2.path() == cgroup.path() + "/cpu.stat");
}

}  // namespace
}  // namespace cellkeep::sandbox
