// SPDX-License-Identifier: Apache-2.0
//
// With scripts as the programs that are asked.
#include "kernel-manager/cli/upgrade/program_check.hpp"

#include "kernel-manager/cli/upgrade/command_line.hpp"
#include "kernel-manager/cli/upgrade/hand_over.hpp"
#include "kernel-manager/cli/version.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace cellkeep::cli {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using cellkeep::test::TemporaryDirectory;

CommandLine write_program(const TemporaryDirectory& directory, const std::string& script) {
    const std::string path = directory.path() + "/program";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
    return {path, {"cellkeep", "serve", "--token", "t"}};
}

TEST_CASE("words are split at their ends", "[cli][upgrade]") {
    using Words = std::vector<std::string>;
    using std::string_view_literals::operator""sv;
    CHECK(split_words("") == Words{});
    CHECK(split_words("a\0b c\0\0"sv) == Words{"a", "b c", ""});
    CHECK(split_words("a\0b"sv) == Words{"a", "b"});
    // What another program has added, and only at the end.
    CHECK(
        split_words("a\0serve\0--take-over\0"
                    "5\0"sv) == Words{"a", "serve"});
    CHECK(
        split_words("a\0--take-over\0"
                    "5\0x\0"sv) == Words{"a", "--take-over", "5", "x"});
    CHECK(
        split_words("--take-over\0"
                    "5\0"sv) == Words{"--take-over", "5"});
}

TEST_CASE("the command line is this process's", "[cli][upgrade]") {
    const auto line = read_command_line();
    REQUIRE(line.has_value());
    CHECK(std::filesystem::path(line.value().program).is_absolute());
    CHECK(std::filesystem::equivalent(line.value().program, "/proc/self/exe"));
    CHECK_FALSE(line.value().words.empty());
}

TEST_CASE("this program's answer is one that it reads", "[cli][upgrade]") {
    const auto read = read_take_over_answer("a warning\n" + take_over_answer() + "\n");
    REQUIRE(read.has_value());
    CHECK(read.value().version == version_text());
    CHECK(read.value().format == kHandOverFormat);
}

TEST_CASE("an answer that is none is not read", "[cli][upgrade]") {
    const std::string said = GENERATE(
        as<std::string>(),
        "",
        "\n",
        "hello",
        "[]",
        "{}",
        R"({"take_over": []})",
        R"({"take_over": {"formats": [1]}})",
        R"({"take_over": {"formats": 1, "version": "1"}})",
        R"({"take_over": {"formats": [1], "version": 1}})",
        R"({"take_over": {"formats": [1], "version": "1"}} more)");
    CAPTURE(said);
    CHECK(read_take_over_answer(said).error().code() == ErrorCode::kProtocol);
}

TEST_CASE("the newest format that both know is taken", "[cli][upgrade]") {
    const auto format_of = [](const std::string& formats) {
        const auto read = read_take_over_answer(
            R"({"take_over": {"formats": [)" + formats + R"(], "version": "7"}})");
        REQUIRE(read.has_value());
        return read.value().format;
    };
    CHECK(format_of("1") == 1);
    CHECK(format_of("2") == 2);
    CHECK(format_of("1, 2") == 2);
    CHECK(format_of("3") == 3);
    CHECK(format_of("2, 1, 3") == 3);
    CHECK(format_of("2, 1, 4") == 2);
    CHECK(format_of("0, 1, 9") == 1);
}

TEST_CASE("another format is a refusal that names the version", "[cli][upgrade]") {
    const auto read =
        read_take_over_answer(R"({"take_over": {"formats": [0, "1", "2", 4], "version": "7"}})");
    REQUIRE(read.has_error());
    CHECK(read.error().code() == ErrorCode::kUnavailable);
    CHECK_THAT(read.error().message(), Contains("version 7"));
}

TEST_CASE("a program is asked with the server's own words", "[cli][upgrade]") {
    const TemporaryDirectory directory;
    const std::string folder = directory.path() + "/upgrade";
    (void)::setenv("NOTIFY_SOCKET", "/x", 1);
    (void)::setenv("LISTEN_FDS", "1", 1);
    const auto line = write_program(
        directory,
        R"([ "$*" = "serve --token t --take-over-check" ] || { echo "words: $*"; exit 1; }
[ -z "$NOTIFY_SOCKET$LISTEN_FDS" ] || { echo told; exit 1; }
[ -n "$PATH" ] || { echo no path; exit 1; }
[ "$PWD" = ")" +
            std::filesystem::current_path().string() + R"(" ] || { echo "in $PWD"; exit 1; }
echo '{"take_over": {"formats": [1], "version": "7"}}')");
    const auto checked = check_program(line, folder);
    (void)::unsetenv("NOTIFY_SOCKET");
    (void)::unsetenv("LISTEN_FDS");
    REQUIRE(checked.has_value());
    CHECK(checked.value().version == "7");
    CHECK(checked.value().format == 1);
    CHECK_FALSE(std::filesystem::exists(folder));
}

TEST_CASE("a program that does not answer in time is killed", "[cli][upgrade]") {
    const TemporaryDirectory directory;
    const auto line = write_program(directory, "exec sleep infinity");
    const auto checked = check_program(line, directory.path() + "/upgrade", 50ms);
    REQUIRE(checked.has_error());
    CHECK(checked.error().code() == ErrorCode::kTimeout);
}

TEST_CASE("a program that fills the disk is killed", "[cli][upgrade]") {
    const TemporaryDirectory directory;
    const auto line = write_program(
        directory,
        "head -c " + std::to_string(kTakeOverCheckBytesMax + 1) +
            " /dev/zero; exec sleep infinity");
    const auto checked = check_program(line, directory.path() + "/upgrade");
    REQUIRE(checked.has_error());
    CHECK(checked.error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("only a program that others cannot change is asked", "[cli][upgrade]") {
    const TemporaryDirectory directory;
    const auto line = write_program(directory, "exit 0");
    CHECK(check_program_file(line.program).has_value());
    std::string what;
    SECTION("written by everybody") {
        REQUIRE(::chmod(line.program.c_str(), 0757) == 0);
        what = "written by everybody";
    }
    SECTION("not executable") {
        REQUIRE(::chmod(line.program.c_str(), 0644) == 0);
        what = "not executable";
    }
    SECTION("gone") {
        std::filesystem::remove(line.program);
        what = "stat(";
    }
    SECTION("a folder") {
        std::filesystem::remove(line.program);
        std::filesystem::create_directory(line.program);
        what = "not a file";
    }
    const Status checked = check_program_file(line.program);
    REQUIRE(checked.has_error());
    CHECK_THAT(checked.error().message(), Contains(what));
}

}  // namespace
}  // namespace cellkeep::cli
