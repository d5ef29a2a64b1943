// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/private_directory.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

using cellkeep::jupyter::PrivateDirectory;
using cellkeep::test::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

/// The pid of a process that has ended and been reaped.
pid_t pid_of_the_dead() {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::_exit(0);
    }
    REQUIRE(pid > 0);
    REQUIRE(::waitpid(pid, nullptr, 0) == pid);
    return pid;
}

void make_with_file(const std::string& path, mode_t mode) {
    REQUIRE(::mkdir(path.c_str(), 0700) == 0);
    std::ofstream(path + "/ses_1-1") << "x";
    REQUIRE(::chmod(path.c_str(), mode) == 0);
}

}  // namespace

TEST_CASE("what a killed server left is swept, nothing else is", "[jupyter][directory]") {
    const TemporaryDirectory base;
    const std::string dead = base.path() + "/ck-" + std::to_string(pid_of_the_dead());
    make_with_file(dead + "-AAAAAA", 0700);
    make_with_file(dead + "-BBBBBB", 0755);  // not one that we made
    make_with_file(dead, 0700);              // no random part
    make_with_file(base.path() + "/ck-" + std::to_string(::getpid()) + "-AAAAAA", 0700);
    make_with_file(base.path() + "/ck-1-AAAAAA", 0700);
    make_with_file(base.path() + "/ck-x-AAAAAA", 0700);
    make_with_file(base.path() + "/ck--5-AAAAAA", 0700);
    REQUIRE(::symlink(base.path().c_str(), (dead + "-LINKED").c_str()) == 0);
    std::string made;
    {
        const auto directory = PrivateDirectory::make_temporary(base.path());
        REQUIRE(directory.has_value());
        made = directory.value().path();
        CHECK(fs::is_directory(made));
    }
    CHECK_FALSE(fs::exists(made));
    CHECK_FALSE(fs::exists(dead + "-AAAAAA"));
    const auto left = std::distance(fs::directory_iterator(base.path()), fs::directory_iterator());
    CHECK(left == 7);
}

TEST_CASE("only files of the given form are removed", "[jupyter][directory]") {
    const TemporaryDirectory base;
    const auto directory = PrivateDirectory::open(base.path() + "/d").value();
    for (const std::string name :
         {"kernel-ses_1.json", "kernel-ses_1.txt", "kernel-ses_k.json", "other.json"}) {
        std::ofstream(directory.path() + "/" + name) << "x";
    }
    directory.remove_files("kernel-ses_", ".json", [](const std::string& name) {
        return name == "kernel-ses_k.json";
    });
    CHECK_FALSE(fs::exists(directory.path() + "/kernel-ses_1.json"));
    CHECK(fs::exists(directory.path() + "/kernel-ses_1.txt"));
    CHECK(fs::exists(directory.path() + "/kernel-ses_k.json"));
    CHECK(fs::exists(directory.path() + "/other.json"));
}

TEST_CASE("a directory is left, and adopted by another owner", "[jupyter][directory]") {
    const TemporaryDirectory base;
    const std::string path = base.path() + "/d";
    {
        auto first = PrivateDirectory::open(path);
        REQUIRE(first.has_value());
        first.value().leave();
    }
    REQUIRE(fs::is_directory(path));
    SECTION("which removes it in the end") {
        CHECK(PrivateDirectory::adopt(path).has_value());
        CHECK_FALSE(fs::exists(path));
    }
    SECTION("not if others may enter it") {
        fs::permissions(path, fs::perms::group_exec, fs::perm_options::add);
        CHECK(PrivateDirectory::adopt(path).error().code() == ErrorCode::kPermissionDenied);
    }
    SECTION("not if it is a link") {
        fs::create_symlink(path, base.path() + "/link");
        const auto adopted = PrivateDirectory::adopt(base.path() + "/link");
        CHECK(adopted.error().code() == ErrorCode::kPermissionDenied);
    }
    SECTION("not if it is gone: it is not made") {
        fs::remove(path);
        CHECK(PrivateDirectory::adopt(path).error().code() == ErrorCode::kPermissionDenied);
        CHECK_FALSE(fs::exists(path));
    }
}

TEST_CASE("a directory that cannot be made is an error with its path", "[jupyter][directory]") {
    const auto nowhere = PrivateDirectory::open("/nowhere/at/all");
    REQUIRE(nowhere.has_error());
    CHECK(nowhere.error().message().find("mkdir(/nowhere/at/all)") != std::string::npos);
    CHECK(PrivateDirectory::make_temporary("/nowhere").has_error());
}
