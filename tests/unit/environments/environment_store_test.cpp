// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/environment_store.hpp"

#include "kernel-manager/environments/bounded_command.hpp"
#include "kernel-manager/environments/installer.hpp"
#include "kernel-manager/environments/python_tree.hpp"
#include "tests/unit/environments/environments_fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace cellkeep::test {
namespace {

namespace fs = std::filesystem;
using environments::EnvironmentBounds;
using environments::EnvironmentStore;
using environments::kBuildBytesFactor;
using environments::kEnvironmentBytesMax;
using environments::kEnvironmentsMax;
using environments::kEnvironmentTimeMax;

/// The file of a module's bytecode: 3.11 is 311 there.
std::string bytecode(const std::string& module) {
    return module + ".cpython-3" + std::to_string(environments::kPythonMinor) + ".pyc";
}

TEST_CASE("an environment is what its packages are, readable by all", "[environments][store]") {
    EnvironmentsFixture fixture;
    const auto record = fixture.create("geo", "alpha==1.0\nhidden==2 # a comment\n");
    CHECK(record.requirements == std::vector<std::string>{"alpha==1.0", "hidden==2"});
    CHECK(record.packages.at("alpha") == "1.0");
    CHECK(record.index == "http://packages.example/simple");
    const std::string packages = fixture.packages("geo");
    CHECK(text_of(packages + "/alpha/__init__.py") == "VERSION = '1.0'\n");
    CHECK(fs::exists(packages + "/alpha/__pycache__/" + bytecode("__init__")));
    CHECK(text_of(packages + "/hidden.txt") == "secret\n");
    CHECK(
        text_of(packages + "/cellkeep-default.pth") ==
        "/opt/cellkeep/environment/lib/python" CELLKEEP_PYTHON_VERSION "/site-packages\n");
    const fs::path environment = fs::path(packages).parent_path().parent_path().parent_path();
    CHECK(fs::read_symlink(environment / "bin/python") == environments::kPythonProgram);
    CHECK(has(text_of(environment / "pyvenv.cfg"), "relocatable = true"));
    for (const auto& entry : fs::recursive_directory_iterator(environment)) {
        CAPTURE(entry.path());
        struct stat info {};
        REQUIRE(::lstat(entry.path().c_str(), &info) == 0);
        CHECK((S_ISLNK(info.st_mode) || (info.st_mode & S_IROTH) != 0));
        CHECK((S_ISLNK(info.st_mode) || (info.st_mode & (S_IWGRP | S_IWOTH)) == 0));
    }
}

TEST_CASE("nothing of a package runs while an environment is made", "[environments][store]") {
    EnvironmentsFixture fixture;
    (void)fixture.create("geo", "alpha==1.0\n");
    const std::string packages = fixture.packages("geo");
    CHECK(fs::exists(packages + "/alpha.pth"));  // Python would run it at its start
    for (const auto& entry : fs::recursive_directory_iterator(fixture.scratch.path())) {
        CHECK(entry.path().filename() != "ran");
    }
    CHECK_FALSE(fs::exists("ran"));
}

TEST_CASE(
    "uv gets one index, wheels only, and no variable of the caller's", "[environments][store]") {
    REQUIRE(::setenv("UV_EXTRA_INDEX_URL", "http://other.example", 1) == 0);
    REQUIRE(::setenv("UV_FIND_LINKS", "/srv/wheels", 1) == 0);
    EnvironmentsFixture fixture;
    const std::string metadata = fixture.scratch.file("default/ipython-9.dist-info");
    fs::create_directories(metadata);
    std::ofstream(metadata + "/METADATA") << "Name: ipython\nVersion: 9.1\n";
    auto order = fixture.order("geo", "tell==1");
    order.index = "http://me:password@packages.example/simple";
    const auto made = fixture.store.create(
        order, [](const std::string& line) { CHECK_FALSE(has(line, "password")); });
    REQUIRE(made.has_value());
    CHECK_FALSE(has(made.value().to_json(), "password"));
    const std::string packages = fixture.packages("geo");
    const std::string variables = text_of(packages + "/environment.txt");
    CHECK(has(variables, "UV_DEFAULT_INDEX=" + order.index + "\n"));
    CHECK(has(variables, "UV_PYTHON_DOWNLOADS=never\n"));
    CHECK_FALSE(has(variables, "UV_EXTRA_INDEX_URL"));
    CHECK_FALSE(has(variables, "UV_FIND_LINKS"));
    const std::string arguments = text_of(packages + "/arguments.txt");
    CHECK(has(arguments, "--only-binary :all:"));
    CHECK(has(arguments, "--no-config"));
    CHECK_FALSE(has(arguments, "packages.example"));
    CHECK(text_of(packages + "/constraints.txt") == "ipython==9.1\n");
    ::unsetenv("UV_EXTRA_INDEX_URL");
    ::unsetenv("UV_FIND_LINKS");
}

TEST_CASE("equal packages are one image, whatever their names are", "[environments][store]") {
    EnvironmentsFixture fixture;
    const auto one = fixture.create("one", "alpha==1.0\n");
    const auto two = fixture.create("two", "alpha==1.0\n");
    const auto other = fixture.create("other", "alpha==1.1\n");
    CHECK(one.digest == two.digest);
    CHECK(one.digest != other.digest);
    REQUIRE(fixture.store.remove("one").has_value());
    CHECK(text_of(fixture.packages("two") + "/alpha/__init__.py") == "VERSION = '1.0'\n");
    REQUIRE(fixture.store.remove("two").has_value());
    const auto left = fixture.store.list();
    REQUIRE(left.has_value());
    REQUIRE(left.value().size() == 1);
    CHECK(left.value()[0].record.name == "other");
}

TEST_CASE("an environment that is in use stays, under each of its names", "[environments][store]") {
    EnvironmentsFixture fixture;
    (void)fixture.create("one", "alpha==1.0\n");
    (void)fixture.create("two", "alpha==1.0\n");
    {
        const auto used = fixture.store.use(fixture.store.find("one").value());
        REQUIRE(used.has_value());
        for (const char* name : {"one", "two"}) {
            CHECK(fixture.store.remove(name).error().code() == ErrorCode::kConflict);
            CHECK(fixture.store.find(name).has_value());
        }
    }
    CHECK(fixture.store.remove("one").has_value());
    const auto used = fixture.store.use(fixture.store.find("two").value());
    REQUIRE(used.has_value());
    CHECK(fixture.store.remove("two").error().code() == ErrorCode::kConflict);
}

TEST_CASE("what is no environment is refused and leaves nothing", "[environments][store]") {
    EnvironmentsFixture fixture;
    (void)fixture.create("taken", "alpha==1.0\n");
    CHECK(fixture.refusal(fixture.order("Geo", "alpha")).code() == ErrorCode::kInvalidArgument);
    CHECK(fixture.refusal(fixture.order("..", "alpha")).code() == ErrorCode::kInvalidArgument);
    CHECK(fixture.refusal(fixture.order("geo", "")).code() == ErrorCode::kInvalidArgument);
    CHECK(fixture.refusal(fixture.order("geo", "-e .")).code() == ErrorCode::kInvalidArgument);
    CHECK(fixture.refusal(fixture.order("taken", "beta")).code() == ErrorCode::kConflict);
    auto order = fixture.order("geo", "alpha");
    order.index = "file:///srv/wheels";
    CHECK(fixture.refusal(order).code() == ErrorCode::kInvalidArgument);
    const Error conflict = fixture.refusal(fixture.order("geo", "alpha==1\nconflict==1\n"));
    CHECK(conflict.code() == ErrorCode::kUnavailable);
    CHECK(has(conflict.message(), "No solution found"));
    CHECK(has(conflict.hint(), "wheel"));
    order = fixture.order("geo", "alpha");
    order.uv = fixture.scratch.file("none");
    CHECK(fixture.refusal(order).code() == ErrorCode::kSystem);
    CHECK(fixture.store.find("geo").error().code() == ErrorCode::kNotFound);
    CHECK(fixture.store.find("../names/taken").error().code() == ErrorCode::kInvalidArgument);
    CHECK(fixture.store.remove("geo").error().code() == ErrorCode::kNotFound);
    CHECK(fixture.store.list().value().size() == 1);
    (void)fixture.create("geo", "alpha==1.0\n");
}

TEST_CASE("a first environment that fails leaves no file of an image", "[environments][store]") {
    EnvironmentsFixture fixture;
    (void)fixture.refusal(fixture.order("geo", "conflict==1\n"));
    CHECK(std::filesystem::is_empty(fixture.directory + "/images"));
    CHECK(std::filesystem::is_empty(fixture.directory + "/names"));
    CHECK(fixture.store.list().value().empty());
    CHECK(std::filesystem::is_empty(fixture.directory + "/images"));
    (void)fixture.create("geo", "alpha==1.0\n");
    CHECK_FALSE(std::filesystem::is_empty(fixture.directory + "/images"));
}

TEST_CASE("environments have bounds of number, space and time", "[environments][store]") {
    CHECK(EnvironmentBounds{}.count == kEnvironmentsMax);
    CHECK(EnvironmentBounds{}.bytes == kEnvironmentBytesMax);
    CHECK(EnvironmentBounds{}.time == kEnvironmentTimeMax);
    SECTION("number") {
        EnvironmentBounds bounds;
        bounds.count = 2;
        EnvironmentsFixture fixture(bounds);
        (void)fixture.create("one", "alpha==1\n");
        (void)fixture.create("two", "alpha==1\n");
        CHECK(
            fixture.refusal(fixture.order("three", "alpha==1\n")).code() ==
            ErrorCode::kLimitExceeded);
        REQUIRE(fixture.store.remove("one").has_value());
        (void)fixture.create("three", "alpha==1\n");
    }
    SECTION("space of its files") {
        EnvironmentBounds bounds;
        bounds.bytes = 2'500'000;
        EnvironmentsFixture enough(bounds);
        (void)enough.create("geo", "big==1\n");
        bounds.bytes = 1'500'000;
        EnvironmentsFixture fixture(bounds);
        CHECK(
            fixture.refusal(fixture.order("geo", "big==1\n")).code() == ErrorCode::kLimitExceeded);
    }
    SECTION("space while it is made") {
        EnvironmentBounds bounds;
        bounds.bytes = 2'000'000 / kBuildBytesFactor - 100'000;
        EnvironmentsFixture fixture(bounds);
        CHECK(
            fixture.refusal(fixture.order("geo", "big==1\nendless==1\n")).code() ==
            ErrorCode::kLimitExceeded);
    }
    SECTION("time") {
        EnvironmentBounds bounds;
        bounds.time = std::chrono::milliseconds(50);
        EnvironmentsFixture fixture(bounds);
        CHECK(fixture.refusal(fixture.order("geo", "endless==1\n")).code() == ErrorCode::kTimeout);
    }
}

TEST_CASE("an environment whose files were changed is not used", "[environments][store]") {
    EnvironmentsFixture fixture;
    (void)fixture.create("good", "beta==1.0\n");
    (void)fixture.create("geo", "alpha==1.0\n");
    const std::string module = fixture.packages("geo") + "/alpha/__init__.py";
    REQUIRE(::chmod(module.c_str(), 0644) == 0);
    std::ofstream(module) << "VERSION = '9.9'\n";
    const auto found = fixture.store.find("geo");
    REQUIRE(found.has_value());
    const auto used = fixture.store.use(found.value());
    REQUIRE(used.has_error());
    CHECK(used.error().code() == ErrorCode::kProtocol);
    CHECK(has(used.error().hint(), "env remove geo"));
    const auto gone = fixture.store.find("geo");
    REQUIRE(gone.has_value());
    CHECK_FALSE(gone.value().image.has_value());
    CHECK(fixture.store.use(gone.value()).error().code() == ErrorCode::kNotFound);
    CHECK(has(fixture.packages("good"), "site-packages"));
    REQUIRE(fixture.store.remove("geo").has_value());
    (void)fixture.create("geo", "alpha==1.0\n");
    CHECK(text_of(fixture.packages("geo") + "/alpha/__init__.py") == "VERSION = '1.0'\n");
}

TEST_CASE("an environment that a server has is not removed", "[environments][store]") {
    EnvironmentsFixture fixture;
    (void)fixture.create("geo", "alpha==1.0\n");
    {
        const auto used = fixture.store.use(fixture.store.find("geo").value());
        REQUIRE(used.has_value());
        CHECK(fixture.store.find("geo").value().in_use);
        CHECK(fixture.store.remove("geo").error().code() == ErrorCode::kConflict);
        CHECK(fixture.store.find("geo").value().image.has_value());
    }
    CHECK_FALSE(fixture.store.find("geo").value().in_use);
    CHECK(fixture.store.remove("geo").has_value());
    CHECK(fs::is_empty(fixture.directory + "/names"));
}

TEST_CASE("environments that nobody has used for years stay", "[environments][store]") {
    EnvironmentsFixture fixture;
    const std::size_t more_than_kept = image::kEnvironmentImagesKept + 2;
    const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    for (std::size_t i = 0; i < more_than_kept; ++i) {
        const std::string number = std::to_string(i);
        (void)fixture.create("e" + number, "alpha==" + number + "\n");
        for (const auto& entry : fs::directory_iterator(fixture.directory + "/images")) {
            if (entry.is_directory()) {
                const std::string use = entry.path().string() + "/use";
                REQUIRE(::utimensat(AT_FDCWD, use.c_str(), long_ago, 0) == 0);
            }
        }
    }
    const auto all = fixture.store.list();
    REQUIRE(all.has_value());
    REQUIRE(all.value().size() == more_than_kept);
    for (const auto& one : all.value()) {
        CHECK(one.image.has_value());
        CHECK_FALSE(one.in_use);
    }
}

TEST_CASE("what a killed build left is removed by the next", "[environments][store]") {
    EnvironmentsFixture fixture;
    fs::create_directories(fixture.directory + "/building-1234/environment");
    (void)fixture.create("geo", "alpha==1.0\n");  // checks that nothing is left
}

TEST_CASE("a directory that others may read is no store", "[environments][store]") {
    const TemporaryDirectory scratch;
    const std::string open = scratch.file("open");
    fs::create_directory(open);
    REQUIRE(::chmod(open.c_str(), 0755) == 0);
    const auto refused = EnvironmentStore::open(open);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kPermissionDenied);
    CHECK(has(refused.error().hint(), "chmod 700"));
    REQUIRE(::chmod(open.c_str(), 0700) == 0);
    CHECK(EnvironmentStore::open(open).has_value());
}

TEST_CASE(
    "an environment of another Python brings it, and what the kernel needs in it",
    "[environments][store]") {
    EnvironmentsFixture fixture;
    auto order = fixture.order("own", "tell==1");
    order.python = fixture.scratch.file("python");  // not Debian's program
    fs::copy_file(environments::kPythonProgram, order.python);
    const auto made = fixture.store.create(order, [](const std::string&) {});
    INFO((made.has_error() ? made.error().message() : ""));
    REQUIRE(made.has_value());
    CHECK(environments::is_brought(made.value().python));
    CHECK(made.value().python.starts_with(CELLKEEP_PYTHON_VERSION "."));
    CHECK(made.value().requirements == std::vector<std::string>{"tell==1"});
    CHECK(made.value().packages.contains("ipython"));
    CHECK(made.value().packages.contains("pip"));
    const fs::path packages = fixture.packages("own");
    CHECK_FALSE(fs::exists(packages / "cellkeep-default.pth"));
    const fs::path environment = packages.parent_path().parent_path().parent_path();
    CHECK(
        fs::read_symlink(environment / "bin/python") ==
        "/opt/cellkeep/interpreter/bin/python" CELLKEEP_PYTHON_VERSION);
    CHECK(has(text_of(environment / "pyvenv.cfg"), "home = /opt/cellkeep/interpreter/bin\n"));
    const fs::path interpreter = environment.parent_path() / "interpreter";
    CHECK(fs::exists(interpreter / "bin/python" CELLKEEP_PYTHON_VERSION));
    CHECK(fs::exists(interpreter / "lib/python" CELLKEEP_PYTHON_VERSION "/lib-dynload"));
    CHECK(fs::exists(
        interpreter / "lib/python" CELLKEEP_PYTHON_VERSION "/__pycache__" / bytecode("os")));
    CHECK_FALSE(fs::exists(interpreter / "lib/python" CELLKEEP_PYTHON_VERSION "/test"));
    // The copy is a Python where it is, and has its own library.
    environments::BoundedCommand question;
    question.argv = {
        (interpreter / "bin/python" CELLKEEP_PYTHON_VERSION).string(),
        "-I",
        "-c",
        "import os, zlib; print(os.__file__)"};
    question.directory = fixture.scratch.path();
    question.deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    question.bytes_max = kEnvironmentBytesMax;
    const auto answer = environments::run_bounded(question);
    REQUIRE(answer.has_value());
    CHECK(
        answer.value().said ==
        (interpreter / "lib/python" CELLKEEP_PYTHON_VERSION "/os.py\n").string());
}

TEST_CASE("what brings no Python leaves no environment", "[environments][store]") {
    EnvironmentsFixture fixture;
    for (const char* python : {"3.8", "/nonexistent/python3.12", "/bin/sh"}) {
        CAPTURE(python);
        auto order = fixture.order("own", "alpha==1");
        order.python = python;
        const Error refused = fixture.refusal(order);
        CHECK(refused.code() == ErrorCode::kInvalidArgument);
        CHECK(has(refused.message(), "--python: "));
    }
    const EnvironmentBounds small{kEnvironmentsMax, 4UL << 20U, kEnvironmentTimeMax};
    EnvironmentsFixture narrow(small);
    auto order = narrow.order("own", "alpha==1");
    order.python = narrow.scratch.file("python");
    fs::copy_file(environments::kPythonProgram, order.python);
    CHECK(narrow.refusal(order).code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("uv is found where it is, and else the way to it is told", "[environments]") {
    const EnvironmentsFixture fixture;
    REQUIRE(::setenv("CELLKEEP_UV", fixture.uv.c_str(), 1) == 0);
    CHECK(environments::find_uv().value() == fixture.uv);
    REQUIRE(::setenv("CELLKEEP_UV", fixture.directory.c_str(), 1) == 0);  // no program
    CHECK(environments::find_uv().error().code() == ErrorCode::kUnavailable);
    ::unsetenv("CELLKEEP_UV");
    const std::string path = std::getenv("PATH");
    REQUIRE(::setenv("PATH", fixture.scratch.path().c_str(), 1) == 0);
    CHECK(environments::find_uv().value() == fixture.uv);
    REQUIRE(::setenv("PATH", fixture.directory.c_str(), 1) == 0);
    const auto absent = environments::find_uv();
    REQUIRE(absent.has_error());
    CHECK(has(absent.error().hint(), "pip install uv"));
    REQUIRE(::setenv("PATH", path.c_str(), 1) == 0);
}

}  // namespace
}  // namespace cellkeep::test
