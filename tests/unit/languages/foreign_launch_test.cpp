// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/foreign_launch.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

using namespace cellkeep;
using namespace cellkeep::session;
using cellkeep::test::TemporaryDirectory;

namespace {

/// Images that hold the bridge and one program.
struct Images {
    Images() {
        prepared.programs.root = prepared.environment.root = directory.path();
        for (const char* path :
             {"/opt/cellkeep/bin/cellkeep-kernel-driver",
              "/opt/cellkeep/kernels/foreign/x",
              "/opt/cellkeep/packages/foreign/x",
              "/usr/bin/packaged"}) {
            add(path);
        }
    }

    void add(const std::string& path) const {
        const std::filesystem::path file = directory.path() + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << "x";
    }

    TemporaryDirectory directory;
    image::Prepared prepared;
};

ForeignKernel kernel_of(const std::string& program) {
    ForeignKernel kernel;
    kernel.name = "one";
    kernel.resources = "/srv/kernels/one";
    kernel.program = program;
    kernel.system_files = {program};
    kernel.shared = {
        {.source = "/usr/share/extra", .target = "/usr/share/extra"},
        {.source = "/opt/one", .target = "/opt/one"}};
    return kernel;
}

bool shows(const KernelSpec& spec, const std::string& target) {
    return std::any_of(spec.read_only.begin(), spec.read_only.end(), [&](const auto& path) {
        return path.target == target;
    });
}

}  // namespace

TEST_CASE("a foreign kernel has what it needs from the images or the host", "[session][foreign]") {
    const Images images;
    const auto spec = make_foreign_spec(kernel_of("/usr/bin/packaged"), {}, {}, &images.prepared);
    REQUIRE(spec.has_value());
    CHECK(shows(spec.value(), "/opt/one"));
    CHECK_FALSE(shows(spec.value(), "/usr/share/extra"));  // /usr is the image's
    const auto of_host = make_foreign_spec(kernel_of("/usr/local/bin/own"), {}, {}, nullptr);
    REQUIRE(of_host.has_value());
    CHECK(shows(of_host.value(), "/usr/share/extra"));
    CHECK(make_foreign_spec(kernel_of("/opt/one/bin/own"), {}, {}, &images.prepared).has_value());
}

TEST_CASE("one that the images cannot run is refused by what is missing", "[session][foreign]") {
    const Images images;
    std::string missing = "/usr/local/bin/own";
    std::string program = missing;
    SECTION("a program of no package") {}
    SECTION("an image of before the bridge") {
        program = "/usr/bin/packaged";
        missing = "/opt/cellkeep/packages/foreign";
        std::filesystem::remove_all(images.directory.path() + missing);
    }
    SECTION("an image of before the driver") {
        program = "/usr/bin/packaged";
        missing = "/opt/cellkeep/bin/cellkeep-kernel-driver";
        std::filesystem::remove_all(images.directory.path() + missing);
    }
    const auto spec = make_foreign_spec(kernel_of(program), {}, {}, &images.prepared);
    REQUIRE(spec.has_error());
    CHECK(spec.error().code() == ErrorCode::kUnavailable);
    CHECK_THAT(spec.error().message(), Catch::Contains(missing));
}
