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
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

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

TEST_CASE("a name is looked up as it was when the program was started", "[cli][upgrade]") {
    namespace fs = std::filesystem;
    const TemporaryDirectory directory;
    const std::string root = directory.path();
    for (const char* folder : {"/first", "/second", "/third"}) {
        fs::create_directory(root + folder);
    }
    std::ofstream(root + "/first/program") << "another\n";
    std::ofstream(root + "/release") << "this\n";
    fs::create_symlink(root + "/release", root + "/second/program");
    fs::create_symlink(root + "/release", root + "/third/program");
    const std::string exe = root + "/release";
    const auto path = [&root](const std::string& folders) {
        std::string text;
        for (const char folder : folders) {
            text += (text.empty() ? "" : ":") + root +
                    (folder == '1'   ? "/first"
                     : folder == '2' ? "/second"
                     : folder == '3' ? "/third"
                                     : "/none");
        }
        return text;
    };
    // The link, not what it leads to now.
    CHECK(find_in_path("program", path("0123"), exe) == root + "/second/program");
    CHECK(find_in_path("program", path("32"), exe) == root + "/third/program");
    CHECK(find_in_path("program", path("2"), exe) == root + "/second/program");
    CHECK(find_in_path("program", path("1"), exe).empty());
    CHECK(find_in_path("program", path("0"), exe).empty());
    CHECK(find_in_path("other", path("123"), exe).empty());
    CHECK(find_in_path("program", "", exe).empty());
    CHECK(find_in_path("", path("123"), exe).empty());
    CHECK(find_in_path("program", path("2"), root + "/gone").empty());
    // Where that is depends on where one is.
    const fs::path before = fs::current_path();
    fs::current_path(root);
    CHECK(find_in_path("program", "second", exe).empty());
    CHECK(find_in_path("program", ":second:" + path("3"), exe) == root + "/third/program");
    fs::current_path(before);
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
    CHECK(format_of("2, 1, 4") == 4);
    CHECK(format_of("2, 1, 5, 4") == 5);
    CHECK(format_of("2, 6, 5") == 6);
    CHECK(format_of("2, 7, 5") == 7);
    CHECK(format_of("2, 1, " + std::to_string(kHandOverFormat + 1)) == 2);
    CHECK(format_of("0, 1, 9") == 1);
}

TEST_CASE("another format is a refusal that names the version", "[cli][upgrade]") {
    const std::string next = std::to_string(kHandOverFormat + 1);
    const auto read = read_take_over_answer(
        R"({"take_over": {"formats": [0, "1", "2", )" + next + R"(], "version": "7"}})");
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
        R"([ "$CELLKEEP_PASSED_ADDRESSES" = "127.0.0.1:1 unix:/x" ] || { echo unknown; exit 1; }
[ "$*" = "serve --token t --take-over-check" ] || { echo "words: $*"; exit 1; }
[ -z "$NOTIFY_SOCKET$LISTEN_FDS" ] || { echo told; exit 1; }
[ -n "$PATH" ] || { echo no path; exit 1; }
[ "$PWD" = ")" +
            std::filesystem::current_path().string() + R"(" ] || { echo "in $PWD"; exit 1; }
echo '{"take_over": {"formats": [1], "version": "7"}}')");
    const auto checked = check_program({line, folder, {"127.0.0.1:1", "unix:/x"}});
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
    const auto checked = check_program({line, directory.path() + "/upgrade", {}, {}, 50ms});
    REQUIRE(checked.has_error());
    CHECK(checked.error().code() == ErrorCode::kTimeout);
}

TEST_CASE("a program that nobody waits for any more is killed", "[cli][upgrade]") {
    const TemporaryDirectory directory;
    std::stop_source stop;
    // It begins, and then waits for what nobody writes.
    const std::string begun = directory.path() + "/begun";
    REQUIRE(::mkfifo(begun.c_str(), 0600) == 0);
    const auto line = write_program(directory, "echo > " + begun + "; exec sleep infinity");
    std::thread waits([&begun, &stop] {
        std::string word;
        std::getline(std::ifstream(begun), word);
        stop.request_stop();
    });
    const auto checked = check_program(
        {line, directory.path() + "/upgrade", {}, stop.get_token(), std::chrono::hours(1)});
    waits.join();
    REQUIRE(checked.has_error());
    CHECK(checked.error().code() == ErrorCode::kCancelled);
    CHECK_FALSE(std::filesystem::exists(directory.path() + "/upgrade"));
}

TEST_CASE("the addresses that are passed are told", "[cli][upgrade]") {
    CHECK_FALSE(read_passed_addresses());
    REQUIRE(::setenv(kPassedAddressesVariable, "", 1) == 0);
    CHECK(read_passed_addresses() == std::vector<std::string>());
    REQUIRE(::setenv(kPassedAddressesVariable, "127.0.0.1:1 unix:/x", 1) == 0);
    CHECK(read_passed_addresses() == std::vector<std::string>{"127.0.0.1:1", "unix:/x"});
    REQUIRE(::unsetenv(kPassedAddressesVariable) == 0);
}

TEST_CASE("a program that fills the disk is killed", "[cli][upgrade]") {
    const TemporaryDirectory directory;
    const auto line = write_program(
        directory,
        "head -c " + std::to_string(kTakeOverCheckBytesMax + 1) +
            " /dev/zero; exec sleep infinity");
    const auto checked = check_program({line, directory.path() + "/upgrade", {}});
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
