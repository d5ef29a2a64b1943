// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/memory_limit.hpp"

#include "tests/unit/sandbox/fake_cgroup.hpp"

namespace cellkeep::sandbox {
namespace {

/// As root, v2, with swap accounted for.
MemoryLimit limit_v2(const FakeCgroup& cgroup, std::uint64_t bytes) {
    cgroup.offer("memory.max");
    cgroup.offer("memory.swap.max");
    auto limit = MemoryLimit::apply_v2(cgroup.path(), bytes);
    REQUIRE(limit.has_value());
    return std::move(limit).value();
}

MemoryLimit limit_v1(const FakeCgroup& cgroup, std::uint64_t bytes) {
    cgroup.offer("memory.limit_in_bytes");
    cgroup.offer("memory.memsw.limit_in_bytes");
    cgroup.offer("memory.kmem.tcp.limit_in_bytes");
    auto limit = MemoryLimit::apply_v1(cgroup.path(), bytes);
    REQUIRE(limit.has_value());
    return std::move(limit).value();
}

TEST_CASE("a memory limit takes swap along", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    SECTION("v2") {
        const MemoryLimit limit = limit_v2(cgroup, 4096);
        CHECK(limit.in_force());
        CHECK(cgroup.get("memory.max") == "4096");
        CHECK(cgroup.get("memory.swap.max") == "0");
        CHECK(limit.uncounted().what == nullptr);
        CHECK(std::string(limit.mechanism()) == "cgroup v2 memory");
    }
    SECTION("v1, and the buffers of sockets have a share") {
        const MemoryLimit limit = limit_v1(cgroup, 4096);
        CHECK(limit.in_force());
        CHECK(cgroup.get("memory.limit_in_bytes") == "4096");
        CHECK(cgroup.get("memory.memsw.limit_in_bytes") == "4096");
        CHECK(cgroup.get("memory.kmem.tcp.limit_in_bytes") == "512");
        CHECK(limit.uncounted().what == nullptr);
        CHECK(std::string(limit.mechanism()) == "cgroup v1 memory");
    }
    SECTION("v1 without a counter of sockets says so") {
        cgroup.offer("memory.limit_in_bytes");
        cgroup.offer("memory.memsw.limit_in_bytes");
        const auto limit = MemoryLimit::apply_v1(cgroup.path(), 4096);
        REQUIRE(limit.has_value());
        REQUIRE(limit.value().uncounted().what != nullptr);
        CHECK_THAT(limit.value().uncounted().what, Catch::Contains("sockets"));
    }
}

TEST_CASE("a memory limit that cannot be written is not in force", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    CHECK(MemoryLimit::apply_v2(cgroup.path(), 4096).has_error());
    CHECK(MemoryLimit::apply_v1(cgroup.path(), 4096).has_error());
    CHECK_FALSE(MemoryLimit().in_force());
    CHECK(MemoryLimit().bytes() == 0);
    CHECK(MemoryLimit().refusals() == 0);
    CHECK(MemoryLimit().oom_kills() == 0);
    CHECK(MemoryLimit().peak() == 0);
    CHECK_FALSE(MemoryLimit().restart_peak());
}

TEST_CASE("a memory limit below what is in use is refused", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    MemoryLimit limit = limit_v2(cgroup, 4096);
    cgroup.put("memory.current", "2049\n");
    const Status refused = limit.change(2048);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kConflict);
    CHECK(cgroup.get("memory.max") == "4096");
    cgroup.put("memory.current", "2048\n");
    CHECK(limit.change(2048).has_value());
    CHECK(cgroup.get("memory.max") == "2048");
}

TEST_CASE("a memory limit of v1 changes with its sum", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    MemoryLimit limit = limit_v1(cgroup, 4096);
    cgroup.put("memory.usage_in_bytes", "0\n");
    CHECK(limit.change(2048).has_value());
    CHECK(cgroup.get("memory.limit_in_bytes") == "2048");
    CHECK(cgroup.get("memory.memsw.limit_in_bytes") == "2048");
}

TEST_CASE("what a memory limit counts is read from its own files", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    SECTION("v2") {
        MemoryLimit limit = limit_v2(cgroup, 4096);
        cgroup.put("memory.current", "100\n");
        cgroup.put("memory.peak", "300\n");
        cgroup.put("memory.events", "low 0\nhigh 0\nmax 5\noom 2\noom_kill 1\n");
        CHECK(limit.bytes() == 100);
        CHECK(limit.peak() == 300);
        CHECK(limit.refusals() == 5);
        CHECK(limit.oom_kills() == 1);
        limit.close_counter();
        cgroup.put("memory.events", "max 5\noom_kill 2\n");
        CHECK(limit.oom_kills() == 2);
    }
    SECTION("v1") {
        const MemoryLimit limit = limit_v1(cgroup, 4096);
        cgroup.put("memory.usage_in_bytes", "100\n");
        cgroup.put("memory.max_usage_in_bytes", "300\n");
        cgroup.put("memory.failcnt", "2\n");
        cgroup.put("memory.memsw.failcnt", "3\n");
        cgroup.put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
        CHECK(limit.bytes() == 100);
        CHECK(limit.peak() == 300);
        CHECK(limit.refusals() == 5);
        CHECK(limit.oom_kills() == 1);
    }
    SECTION("what cannot be read is 0") {
        const MemoryLimit limit = limit_v2(cgroup, 4096);
        cgroup.put("memory.current", "much\n");
        CHECK(limit.bytes() == 0);
        CHECK(limit.peak() == 0);
        CHECK(limit.oom_kills() == 0);
    }
}

TEST_CASE("a memory peak begins anew where the file takes a write", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    SECTION("v1") {
        MemoryLimit limit = limit_v1(cgroup, 4096);
        CHECK_FALSE(limit.restart_peak());  // no file
        cgroup.put("memory.max_usage_in_bytes", "9");
        CHECK(limit.restart_peak());
        CHECK(cgroup.get("memory.max_usage_in_bytes") == "0");
        CHECK(limit.peak() == 0);
    }
    SECTION("v2") {
        MemoryLimit limit = limit_v2(cgroup, 4096);
        CHECK_FALSE(limit.restart_peak());
        cgroup.offer("memory.peak");
        CHECK(limit.restart_peak());
        CHECK(cgroup.get("memory.peak") == "reset");
    }
}

}  // namespace
}  // namespace cellkeep::sandbox
