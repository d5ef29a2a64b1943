// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/freezer.hpp"

#include "tests/unit/sandbox/fake_cgroup.hpp"

namespace cellkeep::sandbox {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a freeze of v2 is over when the cgroup says so", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    Freezer freezer(CgroupVersion::kV2, cgroup.path());
    CHECK_FALSE(freezer.works());
    CHECK(freezer.freeze(0ms).has_error());  // Linux before 5.2
    cgroup.offer("cgroup.freeze");
    cgroup.put("cgroup.events", "populated 1\nfrozen 0\n");
    CHECK(freezer.works());
    const Status late = freezer.freeze(0ms);
    REQUIRE(late.has_error());
    CHECK(late.error().code() == ErrorCode::kTimeout);
    CHECK(cgroup.get("cgroup.freeze") == "1");  // it is in force when it comes
    cgroup.put("cgroup.events", "populated 1\nfrozen 1\n");
    CHECK(freezer.freeze(0ms).has_value());
    CHECK(freezer.thaw().has_value());
    CHECK(cgroup.get("cgroup.freeze") == "0");
}

TEST_CASE("a freeze of v1 writes its state", "[sandbox][cgroup]") {
    const FakeCgroup cgroup;
    Freezer freezer(CgroupVersion::kV1, cgroup.path());
    CHECK(freezer.works());
    CHECK(freezer.freeze(0ms).has_error());  // no file
    cgroup.offer("freezer.state");
    CHECK(freezer.freeze(0ms).has_value());
    CHECK(cgroup.get("freezer.state") == "FROZEN");
    CHECK(freezer.thaw().has_value());
    CHECK(cgroup.get("freezer.state") == "THAWED");
}

TEST_CASE("without a cgroup there is nothing to freeze with", "[sandbox][cgroup]") {
    Freezer none;
    CHECK_FALSE(none.works());
    CHECK(none.freeze(0ms).error().code() == ErrorCode::kUnavailable);
    CHECK(none.thaw().error().code() == ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace cellkeep::sandbox
