// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/process_limit.hpp"

#include "tests/unit/sandbox/fake_cgroup.hpp"

namespace cellkeep::sandbox {
namespace {

TEST_CASE("a process limit has room for pid 1 besides", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    CHECK(ProcessLimit::apply(CgroupVersion::kV2, cgroup.path(), 10).has_error());
    cgroup.offer("pids.max");
    auto limit = ProcessLimit::apply(CgroupVersion::kV1, cgroup.path(), 10);
    REQUIRE(limit.has_value());
    CHECK(limit.value().in_force());
    CHECK(cgroup.get("pids.max") == "11");
    CHECK(std::string(limit.value().mechanism()) == "cgroup v1 pids");
    cgroup.offer("pids.max");
    CHECK(limit.value().change(5).has_value());
    CHECK(cgroup.get("pids.max") == "6");
}

TEST_CASE("what a process limit counts is read from its own files", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    cgroup.offer("pids.max");
    auto limit = ProcessLimit::apply(CgroupVersion::kV2, cgroup.path(), 10);
    REQUIRE(limit.has_value());
    CHECK(std::string(limit.value().mechanism()) == "cgroup v2 pids");
    CHECK(limit.value().processes() == 0);
    CHECK(limit.value().refusals() == 0);
    cgroup.put("pids.current", "3\n");
    cgroup.put("pids.events", "max 4\n");
    CHECK(limit.value().processes() == 3);
    CHECK(limit.value().refusals() == 4);
    cgroup.put("pids.events", "max 5\n");  // another file of the same name
    CHECK(limit.value().refusals() == 4);
    limit.value().close_counter();
    CHECK(limit.value().refusals() == 5);
}

TEST_CASE("no process limit counts nothing", "[sandbox][cgroup]") {
    const ProcessLimit none;
    CHECK_FALSE(none.in_force());
    CHECK(none.processes() == 0);
    CHECK(none.refusals() == 0);
}

}  // namespace
}  // namespace cellkeep::sandbox
