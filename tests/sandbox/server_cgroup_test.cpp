// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/server_cgroup.hpp"

#include "sandbox/cgroup/cgroup_layout.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace cellkeep::test {

TEST_CASE("sweeping leaves a living server's cgroups alone") {
    auto sandbox = make_sandbox();
    const auto before = cgroups_of(::getpid());
    require_ok(sandbox::sweep_leftovers());
    CHECK(cgroups_of(::getpid()) == before);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("sweeping judges only the servers of its own pid namespace") {
    if (::geteuid() != 0) {
        return;
    }
    const auto layout = sandbox::read_cgroup_layout();
    REQUIRE(layout.has_value());
    REQUIRE_FALSE(layout.value().mounts.empty());
    const std::string own = sandbox::server_cgroup_name().value();
    const std::string space = own.substr(own.rfind('-'));
    const std::string above = *layout.value().mounts.begin() + "/";
    // Pid 1 has another start time.
    const std::string gone = above + "cellkeep-1-1" + space;
    const std::vector<std::string> others{
        above + "cellkeep-1-1" + space + "0",
        above + "cellkeep-1-1",
        above + "cellkeep-1-1" + space + "-1",
        above + "cellkeep-1-x" + space,
        above + "cellkeep-1-" + space,
        above + "acellkeep-1-1" + space};
    REQUIRE(std::filesystem::create_directory(gone));
    for (const std::string& other : others) {
        REQUIRE(std::filesystem::create_directory(other));
    }
    require_ok(sandbox::sweep_leftovers());
    CHECK_FALSE(std::filesystem::exists(gone));
    for (const std::string& other : others) {
        CAPTURE(other);
        CHECK(::rmdir(other.c_str()) == 0);
    }
}

}  // namespace cellkeep::test
