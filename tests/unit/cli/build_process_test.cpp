// SPDX-License-Identifier: Apache-2.0
//
// With the shell as the program that makes an image.
#include "kernel-manager/cli/preparing/build_process.hpp"

#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

namespace cellkeep::cli {
namespace {

using namespace std::chrono_literals;

struct BuildFixture {
    boost::asio::io_context io;
    std::vector<std::string> lines;
    std::optional<Status> ended;

    std::unique_ptr<BuildProcess> start(const std::string& script) {
        auto started = BuildProcess::start(
            io,
            "/bin/sh",
            {"-c", script},
            {.on_line = [this](const std::string& line) { lines.push_back(line); },
             .on_end = [this](const Status& status) { ended = status; }});
        REQUIRE(started.has_value());
        return std::move(started).value();
    }
    void run() {
        while (!ended && io.run_one_for(20s) > 0) {
        }
        REQUIRE(ended);
    }
};

TEST_CASE_METHOD(BuildFixture, "a build tells its lines and its end", "[cli][preparing]") {
    const auto process = start("echo one >&2; echo nothing; printf 'two\\n\\nthree' >&2");
    run();
    CHECK(ended->has_value());
    CHECK(lines == std::vector<std::string>{"one", "two", "three"});
    // It was waited for.
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE_METHOD(BuildFixture, "a build that fails, and one that is killed", "[cli][preparing]") {
    SECTION("by itself") {
        const auto process = start("echo why >&2; exit 1");
        run();
        REQUIRE(ended->has_error());
        CHECK(ended->error().code() == ErrorCode::kUnavailable);
    }
    SECTION("by a signal") {
        const auto process = start("echo why >&2; kill -9 $$");
        run();
        REQUIRE(ended->has_error());
        CHECK(ended->error().code() == ErrorCode::kCancelled);
    }
    CHECK(lines == std::vector<std::string>{"why"});
}

TEST_CASE_METHOD(BuildFixture, "a line has a bound", "[cli][preparing]") {
    const std::size_t bytes = kBuildLineBytesMax + static_cast<std::size_t>(GENERATE(0, 1));
    const auto process =
        start("head -c " + std::to_string(bytes) + " /dev/zero | tr '\\0' x >&2; echo >&2");
    run();
    REQUIRE(lines.size() == 1);
    CHECK(lines[0] == std::string(kBuildLineBytesMax, 'x'));
}

TEST_CASE_METHOD(
    BuildFixture, "a build has no descriptor of ours and a session", "[cli][preparing]") {
    auto pipe = make_pipe();
    REQUIRE(pipe.has_value());
    const UniqueFd open(::dup(pipe.value().write_end.get()));  // not closed on exec
    const auto process = start("exec >&2; ls /proc/$$/fd; ps -o sid= -p $$");
    run();
    REQUIRE(lines.size() == 4);
    CHECK(std::vector(lines.begin(), lines.begin() + 3) == std::vector<std::string>{"0", "1", "2"});
    CHECK(std::stoi(lines[3]) != ::getsid(0));
}

TEST_CASE_METHOD(BuildFixture, "a build goes on when nobody watches it", "[cli][preparing]") {
    const test::TemporaryDirectory folder;
    const std::string gate = folder.path() + "/gate";
    const std::string done = folder.path() + "/done";
    REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
    start("trap '' PIPE; read x < " + gate + "; echo said >&2; echo 1 > " + done).reset();
    std::ofstream(gate) << "go\n";
    REQUIRE(::waitpid(-1, nullptr, 0) > 0);
    CHECK(std::filesystem::exists(done));
    (void)io.poll();
    CHECK(lines.empty());
    CHECK_FALSE(ended);
}

TEST_CASE("a program that is not there cannot be started", "[cli][preparing]") {
    boost::asio::io_context io;
    const auto started = BuildProcess::start(
        io,
        "/nonexistent/program",
        {},
        {.on_line = [](const std::string&) { FAIL(); }, .on_end = [](const Status&) { FAIL(); }});
    REQUIRE(started.has_error());
    CHECK(started.error().code() == ErrorCode::kSystem);
    (void)io.poll();
}

}  // namespace
}  // namespace cellkeep::cli
