// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/distributions.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace cellkeep::test {
namespace {

namespace fs = std::filesystem;
using environments::find_distributions;
using environments::kDistributionsMax;

void install(const std::string& packages, const std::string& folder, const std::string& metadata) {
    const fs::path directory = fs::path(packages) / (folder + ".dist-info");
    fs::create_directories(directory);
    std::ofstream(directory / "METADATA") << metadata;
}

TEST_CASE("packages are what their metadata says", "[environments]") {
    const TemporaryDirectory packages;
    install(
        packages.path(),
        "Zope.Interface-5.0",
        "Metadata-Version: 2.1\r\nName: Zope._Interface\r\nVersion: 5.0\r\n"
        "Requires-Dist: comm >=0.1.3\nRequires-Dist: Jedi[x]~=1; python_version > '3'\n"
        "Requires-Dist: pytest ; extra == 'test'\n\nName: not this\nRequires-Dist: nor-this\n");
    install(packages.path(), "nothing-1", "Name: nothing\n");
    install(packages.path(), "nameless-1", "Version: 1\n");
    fs::create_directories(packages.path() + "/empty-1.dist-info");
    fs::create_directories(packages.path() + "/zope");
    const auto found = find_distributions(packages.path());
    REQUIRE(found.has_value());
    REQUIRE(found.value().size() == 1);
    const auto& [name, distribution] = *found.value().begin();
    CHECK(name == "zope-interface");
    CHECK(distribution.version == "5.0");
    CHECK(distribution.needs == std::vector<std::string>{"comm", "jedi"});
    CHECK(find_distributions(packages.path() + "/none").value().empty());
}

TEST_CASE("what the kernel needs is found through what that needs", "[environments]") {
    const TemporaryDirectory packages;
    install(
        packages.path(),
        "ipython-9",
        "Name: ipython\nVersion: 9\nRequires-Dist: traitlets\nRequires-Dist: absent\n");
    install(
        packages.path(),
        "traitlets-5",
        "Name: traitlets\nVersion: 5\nRequires-Dist: ipython\n");  // in a circle
    install(packages.path(), "numpy-2", "Name: numpy\nVersion: 2\n");
    const auto needed = environments::kernel_distributions(packages.path());
    REQUIRE(needed.has_value());
    CHECK(needed.value().size() == 2);
    CHECK(needed.value().contains("ipython"));
    CHECK(needed.value().contains("traitlets"));
}

TEST_CASE("a folder of packages has a bound", "[environments]") {
    const TemporaryDirectory packages;
    for (std::size_t i = 0; i < kDistributionsMax; ++i) {
        const std::string name = "p" + std::to_string(i);
        install(packages.path(), name + "-1", "Name: " + name + "\nVersion: 1\n");
    }
    CHECK(find_distributions(packages.path()).value().size() == kDistributionsMax);
    install(packages.path(), "more-1", "Name: more\nVersion: 1\n");
    CHECK(find_distributions(packages.path()).error().code() == ErrorCode::kLimitExceeded);
}

}  // namespace
}  // namespace cellkeep::test
