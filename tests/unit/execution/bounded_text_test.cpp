// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/bounded_text.hpp"

#include "sandbox/workspace/workspace.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

using cellkeep::UniqueFd;
using cellkeep::sandbox::Workspace;
using cellkeep::session::BoundedText;
using cellkeep::test::TemporaryDirectory;

TEST_CASE("text up to the bound is kept whole", "[session][text]") {
    BoundedText text(8, "x");
    text.append("1234", nullptr);
    text.append("5678", nullptr);
    const auto outcome = text.finish();
    CHECK(outcome.text == "12345678");
    CHECK_FALSE(outcome.truncation.has_value());
}

TEST_CASE(
    "one byte past the bound keeps head and tail and says how much is missing", "[session][text]") {
    BoundedText text(8, "x");
    text.append("123456789", nullptr);
    const auto outcome = text.finish();
    REQUIRE(outcome.truncation.has_value());
    CHECK(outcome.truncation->total == 9);
    CHECK(outcome.truncation->kept == 8);
    CHECK(outcome.truncation->saved_to.empty());
    CHECK(outcome.text == "1234\n… 1 bytes left out …\n6789");
}

TEST_CASE("a long flood in small pieces keeps the true head and tail", "[session][text]") {
    BoundedText text(100, "x");
    std::string whole;
    for (int i = 0; i < 50'000; ++i) {
        const std::string line = std::to_string(i) + "\n";
        whole += line;
        text.append(line, nullptr);
    }
    const auto outcome = text.finish();
    CHECK(outcome.truncation->total == whole.size());
    CHECK(outcome.text.starts_with(whole.substr(0, 50)));
    CHECK(outcome.text.ends_with(whole.substr(whole.size() - 50)));
    CHECK(outcome.text.size() < 200);
}

TEST_CASE("no cut splits a character", "[session][text]") {
    for (std::uint64_t bound = 4; bound < 24; ++bound) {
        BoundedText text(bound, "x");
        std::string euros;
        for (int i = 0; i < 40; ++i) {
            euros += "€";
        }
        text.append(euros, nullptr);
        const auto outcome = text.finish();
        CAPTURE(bound, outcome.text);
        // nlohmann refuses invalid UTF-8: a strict check for free.
        CHECK_NOTHROW(nlohmann::json(outcome.text).dump());
    }
}

TEST_CASE("a text that was cut is saved whole in the workspace", "[session][text]") {
    const TemporaryDirectory directory;
    const UniqueFd fd(::open(directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const Workspace workspace(fd.get(), ::geteuid(), ::getegid());
    BoundedText text(10, ".cellkeep/exe_1/stdout.txt");
    std::string whole;
    for (int i = 0; i < 1000; ++i) {
        whole += std::to_string(i) + ",";
        text.append(std::to_string(i) + ",", &workspace);
    }
    const auto outcome = text.finish();
    REQUIRE(outcome.truncation.has_value());
    CHECK(outcome.truncation->saved_to == ".cellkeep/exe_1/stdout.txt");
    CHECK_THAT(outcome.text, Catch::Contains(".cellkeep/exe_1/stdout.txt"));
    std::ifstream saved(directory.path() + "/.cellkeep/exe_1/stdout.txt");
    std::stringstream contents;
    contents << saved.rdbuf();
    CHECK(contents.str() == whole);
}

TEST_CASE("a text that is cleared leaves no file behind", "[session][text]") {
    const TemporaryDirectory directory;
    const UniqueFd fd(::open(directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const Workspace workspace(fd.get(), ::geteuid(), ::getegid());
    BoundedText text(4, "out.txt");
    text.append("123456789", &workspace);
    text.clear();
    text.append("ab", &workspace);
    const auto outcome = text.finish();
    CHECK(outcome.text == "ab");
    CHECK_FALSE(outcome.truncation.has_value());
    CHECK(std::filesystem::is_empty(directory.path()));
}
