// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/swerex/shell_text.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace cellkeep::swerex {
namespace {

constexpr const char* kPrompt = "REXabc";

std::optional<TextEnd> end_of(
    const std::string& text, const std::vector<std::string>& expected = {}) {
    return find_text_end(text, 0, kPrompt, expected);
}

TEST_CASE("a prompt ends the output and has the exit code", "[swerex][text]") {
    const auto end = end_of("out\nREXabc:127:rest");
    REQUIRE(end);
    CHECK(end->at == 4);
    CHECK(end->behind == 15);
    CHECK(end->exit_code == 127);
    CHECK(end->matched.empty());
    CHECK(end_of("REXabc:0:")->exit_code == 0);
    // What only looks like one is output.
    CHECK(end_of("REXabc:x: REXabc:1:")->at == 10);
    CHECK(end_of("REXabREXabc:2:")->at == 5);
}

TEST_CASE("half of a prompt is none yet", "[swerex][text]") {
    for (const char* text :
         {"",
          "out",
          "REX",
          "REXabc",
          "REXabc:",
          "REXabc:1",
          "REXabc::",
          "REXabc:1234:",
          "REXabc:-1:",
          "REXabd:0:",
          "REXabc 0:"}) {
        CAPTURE(text);
        CHECK_FALSE(end_of(text));
    }
}

TEST_CASE("however it comes, an end is found", "[swerex][text]") {
    const std::string whole = "some output\nREXabc:42:";
    std::string said;
    std::size_t searched = 0;
    for (const char one : whole) {
        said += one;
        const auto end = find_text_end(said, searched, kPrompt, {});
        REQUIRE(end.has_value() == (said == whole));
        searched = said.size();
    }
}

TEST_CASE("the first of the expected texts and the prompt counts", "[swerex][text]") {
    const auto end = end_of("a\n>>> REXabc:0:", {"(gdb) ", ">>> "});
    REQUIRE(end);
    CHECK(end->matched == ">>> ");
    CHECK(end->at == 2);
    CHECK(end->behind == 6);
    CHECK_FALSE(end->exit_code);
    CHECK(end_of("REXabc:3: >>> ", {">>> "})->exit_code == 3);
    CHECK_FALSE(end_of(">> >", {">>> "}));
    // They are texts, and no patterns.
    CHECK_FALSE(end_of("abc", {".*"}));
}

TEST_CASE("control sequences of a terminal are left out", "[swerex][text]") {
    CHECK(plain_text("\x1B[31mred\x1B[0m\r\n") == "red\n");
    CHECK(plain_text("\x1B[?2004hx\x1B[?2004l") == "x");
    CHECK(plain_text("a\rb\r\nc") == "a\rb\nc");
    CHECK(plain_text("\x1B") == "\x1B");
    CHECK(plain_text("\x1B[12;") == "\x1B[12;");
    CHECK(plain_text("").empty());
}

TEST_CASE("blanks are taken off both sides", "[swerex][text]") {
    CHECK(stripped(" \r\n a b\t\n") == "a b");
    CHECK(stripped("").empty());
    CHECK(stripped(" \n").empty());
}

TEST_CASE("UTF-8 is told from other bytes", "[swerex][text]") {
    CHECK(is_utf8(""));
    CHECK(is_utf8("k\xC3\xA4se"));
    CHECK_FALSE(is_utf8("k\xC3"));
    CHECK_FALSE(is_utf8("\xFF"));
}

}  // namespace
}  // namespace cellkeep::swerex
