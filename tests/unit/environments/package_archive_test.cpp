// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/package_archive.hpp"

#include "kernel-manager/environments/bounded_command.hpp"
#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace cellkeep::test {
namespace {

namespace fs = std::filesystem;
using environments::DebianPackage;
using environments::SystemTree;
using environments::unpack_package;

constexpr std::uintmax_t kZeros = 64U << 20U;

/// A package that is small until it is unpacked.
std::string make_package(const TemporaryDirectory& directory) {
    const std::string root = directory.file("root");
    fs::create_directories(root + "/DEBIAN");
    fs::create_directories(root + "/usr/share/zeros");
    const std::string control =
        "Package: zeros\nVersion: 1\nArchitecture: all\nMaintainer: T <t@example.org>\n"
        "Description: zeros\n";
    REQUIRE(write_file_atomically(root + "/DEBIAN/control", control, 0644).has_value());
    REQUIRE(write_file_atomically(root + "/usr/share/zeros/data", "", 0644).has_value());
    fs::resize_file(root + "/usr/share/zeros/data", kZeros);
    const std::string file = directory.file("zeros_1_all.deb");
    environments::BoundedCommand build;
    build.argv = {"/usr/bin/dpkg-deb", "--root-owner-group", "-Zgzip", "--build", root, file};
    build.environment = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8"};
    build.directory = directory.file("");
    build.deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    build.bytes_max = 4 * kZeros;
    const auto built = environments::run_bounded(build);
    REQUIRE(built.has_value());
    REQUIRE(built.value().succeeded);
    REQUIRE(fs::file_size(file) < (1U << 20U));
    return file;
}

TEST_CASE("a package is unpacked up to its bound", "[environments][debian]") {
    const TemporaryDirectory directory;
    const std::string file = make_package(directory);
    fs::create_directories(directory.file("work"));
    auto tree = SystemTree::create(directory.file("system"), 2 * kZeros);
    REQUIRE(tree.has_value());
    environments::UnpackOrder order{
        "/usr/bin/dpkg-deb",
        directory.file("work"),
        std::chrono::steady_clock::now() + std::chrono::minutes(5),
        2 * kZeros};
    const DebianPackage package{"zeros", "1", "all"};
    SECTION("it fits") {
        REQUIRE(unpack_package(file, package, order, tree.value()).has_value());
        CHECK(fs::file_size(directory.file("system/usr/share/zeros/data")) == kZeros);
    }
    SECTION("it is larger: nothing goes on writing") {
        order.bytes_max = kZeros / 4;
        const auto refused = unpack_package(file, package, order, tree.value());
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
        for (const auto& entry : fs::directory_iterator(directory.file("work"))) {
            if (entry.is_regular_file()) {
                CHECK(entry.file_size() <= order.bytes_max);
            }
        }
    }
}

}  // namespace
}  // namespace cellkeep::test
