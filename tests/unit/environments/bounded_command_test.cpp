// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/bounded_command.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <stop_token>
#include <string>
#include <thread>

namespace cellkeep::test {
namespace {

using environments::BoundedCommand;
using environments::bytes_beneath;
using environments::kSaidBytesMax;
using environments::run_bounded;

BoundedCommand shell(const TemporaryDirectory& directory, const std::string& script) {
    BoundedCommand command;
    command.argv = {"/bin/sh", "-c", script};
    command.environment = {"PATH=/usr/bin:/bin", "GREETING=hello"};
    command.directory = directory.path();
    command.deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    command.bytes_max = 1UL << 20U;
    return command;
}

TEST_CASE("a bounded command tells how it ended and what it said", "[environments]") {
    const TemporaryDirectory directory;
    const auto good = run_bounded(shell(directory, "echo $GREETING $HOME; pwd >&2; cat"));
    REQUIRE(good.has_value());
    CHECK(good.value().succeeded);
    CHECK(good.value().said == "hello\n" + directory.path() + "\n");
    const auto bad = run_bounded(shell(directory, "echo no; exit 3"));
    REQUIRE(bad.has_value());
    CHECK_FALSE(bad.value().succeeded);
    CHECK(bad.value().said == "no\n");
    CHECK_FALSE(run_bounded(shell(directory, "kill -9 $$")).value().succeeded);
    CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("of a bounded command's words the last are told", "[environments]") {
    const TemporaryDirectory directory;
    const std::string count = std::to_string(kSaidBytesMax);
    const auto end =
        run_bounded(shell(directory, "printf x; head -c " + count + " /dev/zero | tr '\\0' y"));
    REQUIRE(end.has_value());
    CHECK(end.value().said == std::string(kSaidBytesMax, 'y'));
}

TEST_CASE("all that a bounded command prints can go to a file", "[environments]") {
    const TemporaryDirectory directory;
    BoundedCommand command = shell(directory, "head -c 100000 /dev/zero; echo wrong >&2");
    command.output = directory.file("printed");
    const auto end = run_bounded(command);
    REQUIRE(end.has_value());
    CHECK(end.value().said == "wrong\n");
    CHECK(std::filesystem::file_size(command.output) == 100000);
    command.bytes_max = 1000;
    command.argv[2] = "head -c 100000 /dev/zero; sleep 100";
    CHECK(run_bounded(command).error().code() == ErrorCode::kLimitExceeded);
    command.output = directory.file("nowhere/printed");
    CHECK(run_bounded(command).has_error());
}

TEST_CASE("a bounded command gets none of the caller's descriptors", "[environments]") {
    const TemporaryDirectory directory;
    const auto end = run_bounded(shell(directory, "ls /proc/self/fd | wc -l"));
    REQUIRE(end.has_value());
    CHECK(end.value().said == "4\n");  // three, and what ls reads the folder by
}

TEST_CASE("a bounded command runs where it is told to", "[environments]") {
    const TemporaryDirectory directory;
    BoundedCommand command = shell(directory, "pwd");
    command.runs_in = "/usr";
    CHECK(run_bounded(command).value().said == "/usr\n");
}

TEST_CASE("a bounded command has its signals, whatever its caller holds back", "[environments]") {
    const TemporaryDirectory directory;
    sigset_t held;
    sigset_t before;
    REQUIRE(::sigfillset(&held) == 0);
    REQUIRE(::pthread_sigmask(SIG_SETMASK, &held, &before) == 0);
    const auto end = run_bounded(shell(directory, "kill -TERM $$; echo on"));
    REQUIRE(::pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
    REQUIRE(end.has_value());
    CHECK_FALSE(end.value().succeeded);
    CHECK(end.value().said.empty());
}

TEST_CASE("a bounded command is killed at its bounds", "[environments]") {
    const TemporaryDirectory directory;
    BoundedCommand endless = shell(directory, "exec sleep infinity");
    endless.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    CHECK(run_bounded(endless).error().code() == ErrorCode::kTimeout);
    BoundedCommand greedy =
        shell(directory, "head -c 1048577 /dev/zero > big; exec sleep infinity");
    CHECK(run_bounded(greedy).error().code() == ErrorCode::kLimitExceeded);
    CHECK(bytes_beneath(directory.path()) == greedy.bytes_max + 1);
}

TEST_CASE("a bounded command is killed when it is stopped", "[environments]") {
    const TemporaryDirectory directory;
    BoundedCommand command = shell(directory, "exec sleep infinity");
    std::stop_source stop;
    command.stop = stop.get_token();
    command.deadline += std::chrono::hours(1);
    SECTION("before") {
        stop.request_stop();
        CHECK(run_bounded(command).error().code() == ErrorCode::kCancelled);
    }
    SECTION("while it runs") {
        std::thread other([&stop] { stop.request_stop(); });
        CHECK(run_bounded(command).error().code() == ErrorCode::kCancelled);
        other.join();
    }
    SECTION("never") {
        command.argv = shell(directory, "echo done").argv;
        CHECK(run_bounded(command).value().said == "done\n");
    }
}

TEST_CASE("a program that is not there is an error", "[environments]") {
    const TemporaryDirectory directory;
    BoundedCommand command = shell(directory, "");
    command.argv = {directory.path() + "/none"};
    CHECK(run_bounded(command).error().code() == ErrorCode::kSystem);
}

}  // namespace
}  // namespace cellkeep::test
