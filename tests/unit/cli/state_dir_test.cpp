// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/state_dir.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::cli {
namespace {

mode_t mode_of(const std::string& path) {
    struct stat about {};
    REQUIRE(::stat(path.c_str(), &about) == 0);
    return about.st_mode & 0777U;
}

ServerRecord make_record() {
    ServerRecord record;
    record.url = "http://127.0.0.1:1";
    record.token = "secret";
    record.pid = 42;
    record.started_at = "2026-01-01T00:00:00.000000Z";
    record.version = "1";
    return record;
}

TEST_CASE("a state directory is made private and its record is too", "[cli][state_dir]") {
    const test::TemporaryDirectory parent;
    const std::string path = parent.path() + "/a/b";
    {
        auto state = StateDir::lock(path);
        REQUIRE(state.has_value());
        CHECK(mode_of(path) == 0700);
        CHECK(load_server_record(path).error().code() == ErrorCode::kNotFound);
        REQUIRE(state.value().publish(make_record()).has_value());
        CHECK(mode_of(path + "/server.json") == 0600);
        const auto record = load_server_record(path);
        REQUIRE(record.has_value());
        CHECK(record.value().url == "http://127.0.0.1:1");
        CHECK(record.value().token == "secret");
        CHECK(record.value().pid == 42);
    }
    CHECK_FALSE(std::filesystem::exists(path + "/server.json"));
    CHECK(StateDir::lock(path).has_value());
}

TEST_CASE("a record gives the address of the server for each transport", "[cli][state_dir]") {
    const test::TemporaryDirectory parent;
    auto state = StateDir::lock(parent.path() + "/state");
    ServerRecord record = make_record();
    const auto address = [&] {
        REQUIRE(state.value().publish(record).has_value());
        return address_of(load_server_record(parent.path() + "/state").value());
    };
    CHECK(address().value().port == "1");
    CHECK_FALSE(address().value().tls);
    record.url = "https://127.0.0.1:1/below/";
    CHECK(address().error().code() == ErrorCode::kProtocol);
    record.certificate_sha256 = "ab";
    CHECK(address().value().tls);
    CHECK(address().value().certificate_sha256 == "ab");
    CHECK(address().value().base == "/below");
    record.url = "unix:/run/cellkeep.sock";
    CHECK(address().value().socket_path == "/run/cellkeep.sock");
    CHECK(address().value().base.empty());
    record.base_url = "/below/";
    CHECK(address().value().base == "/below");
    record.url = "ftp://127.0.0.1:1";
    CHECK(address().error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE(
    "the error of a second server names the process that holds the directory", "[cli][state_dir]") {
    const test::TemporaryDirectory parent;
    const std::string path = parent.path() + "/state";
    auto first = StateDir::lock(path);
    REQUIRE(first.has_value());
    REQUIRE(first.value().publish(make_record()).has_value());
    const auto second = StateDir::lock(path);
    REQUIRE(second.has_error());
    CHECK(second.error().code() == ErrorCode::kConflict);
    CHECK_THAT(second.error().message(), Catch::Matchers::Contains("pid 42"));
    CHECK_THAT(second.error().message(), Catch::Matchers::Contains("http://127.0.0.1:1"));
    CHECK_THAT(second.error().message(), !Catch::Matchers::Contains("secret"));
    CHECK_THAT(second.error().hint(), Catch::Matchers::Contains("--state-dir"));
    CHECK(std::filesystem::exists(path + "/server.json"));
}

TEST_CASE("a lock that was passed on is this directory's, and no other's", "[cli][state_dir]") {
    const test::TemporaryDirectory parent;
    const std::string path = parent.path() + "/state";
    UniqueFd passed;
    {
        auto first = StateDir::lock(path);
        REQUIRE(first.has_value());
        REQUIRE(first.value().publish(make_record()).has_value());
        passed = first.value().pass_on();
    }
    // Still held, and still said who holds it.
    CHECK(StateDir::lock(path).error().code() == ErrorCode::kConflict);
    CHECK(std::filesystem::exists(path + "/server.json"));
    const std::string other = parent.path() + "/other";
    SECTION("in the directory it is enough") {
        const auto second = StateDir::lock(path, std::move(passed));
        CHECK(second.has_value());
        CHECK(StateDir::lock(path).error().code() == ErrorCode::kConflict);
    }
    SECTION("another directory has one of its own") {
        const auto second = StateDir::lock(other, std::move(passed));
        CHECK(second.has_value());
        CHECK(StateDir::lock(other).error().code() == ErrorCode::kConflict);
        CHECK(StateDir::lock(path).has_value());
    }
    SECTION("another directory that is held is not to be had by it") {
        const auto held = StateDir::lock(other);
        CHECK(StateDir::lock(other, std::move(passed)).error().code() == ErrorCode::kConflict);
    }
}

TEST_CASE("a directory that is open to others is refused, unless it is empty", "[cli][state_dir]") {
    const test::TemporaryDirectory parent;
    const std::string path = parent.path() + "/open";
    REQUIRE(::mkdir(path.c_str(), 0755) == 0);
    CHECK(StateDir::lock(path).has_value());
    CHECK(mode_of(path) == 0700);
    REQUIRE(::chmod(path.c_str(), 0750) == 0);
    const auto refused = StateDir::lock(path);  // it holds the lock file now
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kPermissionDenied);
    CHECK(mode_of(path) == 0750);
}

TEST_CASE("what is not a directory is refused", "[cli][state_dir]") {
    const test::TemporaryDirectory parent;
    std::ofstream(parent.path() + "/file") << "x";
    CHECK(StateDir::lock(parent.path() + "/file").has_error());
    CHECK(StateDir::lock(parent.path() + "/file/below").has_error());
}

TEST_CASE("a record that is damaged is refused", "[cli][state_dir]") {
    const test::TemporaryDirectory parent;
    for (const char* text : {"", "{", "[]", "{}", R"({"url": "x"})", R"({"url": 1, "token": 2})"}) {
        CAPTURE(text);
        std::ofstream(parent.path() + "/server.json", std::ios::trunc) << text;
        CHECK(load_server_record(parent.path()).has_error());
    }
}

TEST_CASE("the default state directory follows the XDG specification", "[cli][state_dir]") {
    ::setenv("XDG_STATE_HOME", "/state", 1);
    ::setenv("HOME", "/home/x", 1);
    CHECK(default_state_dir().value() == "/state/cellkeep");
    ::setenv("XDG_STATE_HOME", "relative", 1);  // the specification says: ignore
    CHECK(default_state_dir().value() == "/home/x/.local/state/cellkeep");
    ::unsetenv("XDG_STATE_HOME");
    ::unsetenv("HOME");
    CHECK(default_state_dir().has_error());
}

}  // namespace
}  // namespace cellkeep::cli
