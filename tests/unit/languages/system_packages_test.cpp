// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/system_packages.hpp"

#include "kernel-manager/languages/named_environments.hpp"
#include "kernel-manager/languages/session_languages.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace cellkeep::session {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRelease = "debian bookworm";

KernelSpec python_of_image() {
    KernelSpec spec;
    spec.language = "python";
    spec.env = {"PATH=/opt/d/bin:/usr/bin", "CELLKEEP_ENVIRONMENT=/opt/d"};
    spec.read_only = {
        {.source = "/image/usr", .target = "/usr"},
        {.source = "/image/etc/fonts", .target = "/etc/fonts", .executable = false},
        {.source = "/image/etc/ld.so.cache", .target = "/etc/ld.so.cache", .executable = false},
        {.source = "/image/opt/d", .target = "/opt/d"}};
    spec.environment = {"default", "sha256:1"};
    return spec;
}

environments::NamedRecord record_with_packages() {
    environments::NamedRecord record;
    record.name = "geo";
    record.python = environments::kPythonVersion;
    record.debian.wanted = {"tool"};
    record.debian.packages = {{"tool", "1"}};
    record.debian.release = kRelease;
    record.debian.library_folders = {"/usr/lib/one", "/opt/two"};
    return record;
}

/// The files of such an environment.
struct System {
    System() {
        for (const char* folder :
             {"/usr/bin", "/usr/games", "/etc/fonts", "/etc/tool", "/opt/tool"}) {
            fs::create_directories(tree + folder);
        }
        for (const char* file : {"/etc/tool.conf", "/etc/ld.so.cache"}) {
            std::ofstream(tree + file) << "x";
        }
        fs::create_symlink("/etc/shadow", tree + "/etc/link");
        fs::create_directory_symlink("/root", tree + "/opt/link");
        files.root = directory.path();
        files.lease = std::make_shared<const UniqueFd>();
    }
    test::TemporaryDirectory directory;
    std::string tree = directory.path() + "/system";
    image::ImageInUse files;
};

std::vector<std::string> shown_paths(const KernelSpec& spec) {
    std::vector<std::string> shown;
    for (const sandbox::ReadOnlyPath& path : spec.read_only) {
        shown.push_back(
            path.target + "=" + path.source + (path.over.empty() ? "" : "+" + path.over) +
            (path.executable ? "" : " noexec"));
    }
    return shown;
}

bool has_variable(const KernelSpec& spec, const std::string& variable) {
    return std::find(spec.env.begin(), spec.env.end(), variable) != spec.env.end();
}

TEST_CASE(
    "packages of Debian lie over the image's files, and beside them in /etc and /opt",
    "[session][languages]") {
    const System system;
    KernelSpec spec = python_of_image();
    add_system_packages(record_with_packages(), system.files, spec);
    const std::string& tree = system.tree;
    CHECK(
        shown_paths(spec) == std::vector<std::string>{
                                 "/usr=/image/usr+" + tree + "/usr",
                                 "/etc/fonts=/image/etc/fonts+" + tree + "/etc/fonts noexec",
                                 "/etc/ld.so.cache=/image/etc/ld.so.cache noexec",
                                 "/opt/d=/image/opt/d",
                                 "/etc/tool=" + tree + "/etc/tool noexec",
                                 "/etc/tool.conf=" + tree + "/etc/tool.conf noexec",
                                 "/opt/tool=" + tree + "/opt/tool"});
    CHECK(has_variable(spec, "PATH=/opt/d/bin:/usr/bin:/usr/games"));
    CHECK(has_variable(spec, "LD_LIBRARY_PATH=/usr/lib/one:/opt/two"));
}

TEST_CASE("an environment without packages of Debian changes no path", "[session][languages]") {
    const System system;
    KernelSpec spec = python_of_image();
    environments::NamedRecord record = record_with_packages();
    record.debian.packages.clear();  // all that was asked for is in the image
    add_system_packages(record, system.files, spec);
    CHECK(shown_paths(spec) == shown_paths(python_of_image()));
    CHECK(spec.env == python_of_image().env);
    CHECK(check_system_packages(spec, record, "").has_value());
}

TEST_CASE(
    "all languages of a session see what its environment has over the image",
    "[session][languages]") {
    const System system;
    KernelCatalog catalog;
    catalog.offer(python_of_image());
    KernelSpec bash = python_of_image();
    bash.language = "bash";
    catalog.offer(bash);
    const KernelSpec geo = make_named_spec(python_of_image(), record_with_packages(), system.files);
    catalog.offer(geo);
    const SessionLanguages within = combine_languages(catalog, geo);
    REQUIRE(within.catalog->find("bash") != nullptr);
    CHECK(has_variable(*within.catalog->find("bash"), "LD_LIBRARY_PATH=/usr/lib/one:/opt/two"));
    const auto usr = std::count_if(
        within.read_only.begin(), within.read_only.end(), [](const sandbox::ReadOnlyPath& path) {
            return path.target == "/usr";
        });
    CHECK(usr == 1);
    CHECK(within.read_only.front().over == system.tree + "/usr");
    // The default environment's sessions see nothing of it.
    for (const sandbox::ReadOnlyPath& path :
         combine_languages(catalog, *catalog.find("python")).read_only) {
        CHECK(path.over.empty());
        CHECK(path.source.find(system.tree) == std::string::npos);
    }
}

TEST_CASE(
    "packages of another release, or without an image to lie over, are withheld",
    "[session][languages]") {
    const environments::NamedRecord record = record_with_packages();
    CHECK(check_system_packages(python_of_image(), record, kRelease).has_value());
    for (const char* release : {"debian trixie", "ubuntu bookworm", ""}) {
        CAPTURE(release);
        const Status fits = check_system_packages(python_of_image(), record, release);
        REQUIRE(fits.has_error());
        CHECK(fits.error().code() == ErrorCode::kUnavailable);
        CHECK_THAT(fits.error().message(), Catch::Contains("debian bookworm"));
        CHECK_THAT(fits.error().hint(), Catch::Contains("env update geo"));
    }
    KernelSpec host = python_of_image();
    host.read_only = {{"/usr/bin", "/usr/bin"}, {"/usr/lib", "/usr/lib"}};
    const Status fits = check_system_packages(host, record, kRelease);
    REQUIRE(fits.has_error());
    CHECK_THAT(fits.error().message(), Catch::Contains("private image"));
}

TEST_CASE(
    "packages that were chosen beside others are offered with a remark", "[session][languages]") {
    const std::string now = "sha256:" + std::string(64, '1');
    const std::string before = "sha256:" + std::string(64, '2');
    const auto remark = [](const std::string& of_image, const std::string& of_record) {
        KernelSpec python = python_of_image();
        python.image_packages = of_image;
        environments::NamedRecord record = record_with_packages();
        record.debian.image_packages = of_record;
        return find_remark(python, record);
    };
    CHECK_THAT(
        remark(now, before),
        Catch::Contains(now) && Catch::Contains(before) && Catch::Contains("env update geo"));
    CHECK(remark(now, now).empty());
    // One of the two is not known.
    CHECK(remark(now, "").empty());
    CHECK(remark("", before).empty());
    CHECK(remark("", "").empty());
    KernelSpec python = python_of_image();
    python.image_packages = now;
    environments::NamedRecord without = record_with_packages();
    without.debian.image_packages = before;
    without.debian.packages.clear();
    CHECK(find_remark(python, without).empty());
}

}  // namespace
}  // namespace cellkeep::session
