// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/toml_depth.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep {
namespace {

std::string repeated(const std::string& text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) {
        all += text;
    }
    return all;
}

std::string key_of(std::size_t parts) {
    return repeated("a.", parts - 1) + "a";
}

bool is_too_deep(const std::string& text) {
    const Status checked = check_toml_depth(text);
    CHECK((checked.has_value() || checked.error().code() == ErrorCode::kLimitExceeded));
    return checked.has_error();
}

constexpr std::size_t kManyParts = 100'000;
constexpr std::size_t kPartsOver = kTomlKeyPartsMax + 1;

TEST_CASE("a dotted key of many parts is refused, wherever it stands", "[support][toml]") {
    for (const std::size_t parts : {kPartsOver, kManyParts}) {
        const std::string key = key_of(parts);
        for (const std::string& text :
             {key + " = 1",
              "[" + key + "]",
              "[[" + key + "]]",
              "x = {" + key + " = 1}",
              "x = [{y = 1, " + key + " = 1}]",
              "x = 1\n[y]\n" + key + " = 1",
              "x = \"\"\"\n\\\"\"\"\"\"\"\n" + key + " = 1",
              "x = '''\n\\''''\n" + key + " = 1",
              "x = \"\\\"\" # \"\n" + key + " = 1",
              "x = '\\'\n" + key + " = 1",
              "x = ''\n" + key + " = 1"}) {
            CAPTURE(parts, text.substr(0, 40));
            CHECK(is_too_deep(text));
        }
        CHECK(is_too_deep(repeated("'a' . ", parts - 1) + "a = 1"));
        CHECK(is_too_deep(repeated("\"a\\\"\".", parts - 1) + "a = 1"));
    }
    CHECK_FALSE(is_too_deep(key_of(kTomlKeyPartsMax) + " = 1"));
    CHECK_FALSE(
        is_too_deep("[" + key_of(kTomlKeyPartsMax) + "]\n" + key_of(kTomlKeyPartsMax) + " = 1"));
}

TEST_CASE("many arrays and tables in each other are refused", "[support][toml]") {
    for (const std::size_t levels : {kTomlNestedMax + 1, kManyParts}) {
        CAPTURE(levels);
        CHECK(is_too_deep("x = " + repeated("[", levels) + repeated("]", levels)));
        CHECK(is_too_deep("x = " + repeated("[\n", levels)));
        CHECK(is_too_deep("x = " + repeated("{a = ", levels)));
        CHECK(is_too_deep("x = " + repeated("[{a = ", levels / 2 + 1)));
    }
    CHECK_FALSE(
        is_too_deep("x = " + repeated("[", kTomlNestedMax) + repeated("]", kTomlNestedMax)));
    CHECK_FALSE(is_too_deep(repeated("[x]\n", kManyParts)));
    CHECK_FALSE(is_too_deep("x = [" + repeated("{}, ", kManyParts) + "]"));
}

TEST_CASE("dots and brackets of values and comments are none of a key", "[support][toml]") {
    const std::string dots = repeated(".", kManyParts);
    const std::string brackets = repeated("[{", kManyParts);
    for (const std::string& text : {dots, brackets}) {
        CHECK(is_too_deep(text));  // the control: as they stand here
        CHECK_FALSE(is_too_deep("# " + text));
        CHECK_FALSE(is_too_deep("x = 1 # " + text + "\n"));
        CHECK_FALSE(is_too_deep("x = \"" + text + "\""));
        CHECK_FALSE(is_too_deep("x = '" + text + "'"));
        CHECK_FALSE(is_too_deep("x = \"\"\"" + text + "\"\"\""));
        CHECK_FALSE(is_too_deep("x = \"\"\"\n" + text + "\n\"\" '''\n" + text + "\"\"\"\"\""));
        CHECK_FALSE(is_too_deep("x = '''\n" + text + "''\n\"\"\"" + text + "'''''"));
        CHECK_FALSE(is_too_deep("\"" + text + "\" = 1"));
    }
    CHECK_FALSE(is_too_deep("x = [" + repeated("1.5, ", kManyParts) + "]"));
    CHECK_FALSE(is_too_deep(repeated("a.b = 1\n", kManyParts)));
    CHECK_FALSE(is_too_deep(""));
}

TEST_CASE("the error names the line in which a text is too deep", "[support][toml]") {
    const Status key = check_toml_depth("a = 1\n\n" + key_of(kPartsOver) + " = 1\n");
    REQUIRE(key.has_error());
    CHECK(key.error().message() == "line 3: a key has more than 32 parts");
    const Status nested = check_toml_depth("a = 1\nb = " + repeated("[", kTomlNestedMax + 1));
    REQUIRE(nested.has_error());
    CHECK(nested.error().message() == "line 2: more than 32 arrays and tables lie in each other");
}

}  // namespace
}  // namespace cellkeep
