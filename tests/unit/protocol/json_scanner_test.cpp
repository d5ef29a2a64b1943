// SPDX-License-Identifier: Apache-2.0
#include "protocol/json_scanner.hpp"

#include "protocol/json.hpp"
#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using cellkeep::protocol::is_json;
using cellkeep::protocol::is_valid_json;
using cellkeep::protocol::is_valid_json_object;
using cellkeep::protocol::JsonListener;
using cellkeep::protocol::JsonRange;
using cellkeep::protocol::JsonScanner;
using State = JsonScanner::State;

namespace limits = cellkeep::limits;

namespace {

/// Scans in slices of `bytes`; the number of calls does not matter.
State scan_in_slices(std::string_view text, std::size_t bytes) {
    JsonScanner scanner;
    while (scanner.advance(text, bytes) == State::kMore) {
    }
    return scanner.state();
}

bool scanner_accepts(const std::string& text) {
    const bool whole = is_valid_json(text);
    for (const std::size_t bytes : {1U, 2U, 3U, 7U, 16U, 1000U}) {
        CAPTURE(text, bytes);
        CHECK((scan_in_slices(text, bytes) == State::kValid) == whole);
    }
    CHECK(is_json(text) == whole);
    return whole;
}

std::string wrap(int depth, const std::string& open, const std::string& close) {
    std::string text;
    for (int i = 0; i < depth; ++i) {
        text += open;
    }
    for (int i = 0; i < depth; ++i) {
        text += close;
    }
    return text;
}

struct Heard final : JsonListener {
    std::string_view text;
    std::vector<std::string> events;

    void on_key(std::size_t depth, JsonRange key) override { note("key", depth, key); }
    void on_value(std::size_t depth, JsonRange value) override { note("value", depth, value); }
    void note(const char* what, std::size_t depth, JsonRange range) {
        events.push_back(
            what + std::string(" ") + std::to_string(depth) + " " +
            std::string(text.substr(range.begin, range.end - range.begin)));
    }
};

}  // namespace

TEST_CASE("the scanner accepts JSON text, in slices of any size", "[protocol][scanner]") {
    const std::string text = GENERATE(
        "null",
        " true\r\n",
        "false",
        "0",
        "-0",
        "12.50e-3",
        "1E+2",
        "\"\"",
        R"("a\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00é😀")",
        "\"a string that is longer than one word of eight bytes, and than two\"",
        "[]",
        "{}",
        "[ 1 , [ ] , { } ]",
        R"({"a":{"b":[1,2,{"c":null}]},"a":2})",
        "\t{ \"k\" : \"v\" }\n");
    CHECK(scanner_accepts(text));
}

TEST_CASE("the scanner refuses what is not JSON text", "[protocol][scanner]") {
    const std::string text = GENERATE(
        "",
        " ",
        "nul",
        "nulL",
        "True",
        "NaN",
        "Infinity",
        "-",
        "+1",
        "01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x10",
        "1 2",
        "1,",
        "'a'",
        "\"",
        "\"a",
        "\"\\\"",
        R"("\x")",
        R"("\u12")",
        R"("\u12g4")",
        R"("\uD800")",
        R"("\uD800\n")",
        R"("\uD800\uD800")",
        R"("\uDC00")",
        "\"\n\"",
        "\"tab\there, in the second word\"",
        "[",
        "]",
        "[1",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1}",
        "{",
        "}",
        "{]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{1:1}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "[] []",
        "// a comment",
        "[1] // a comment",
        "\xEF\xBB\xBF{}",
        "\"\x80\"",
        "\"\xC3\"",
        "\"\xC3(\"",
        "\"\xC0\xAF\"",
        "\"\xE0\x80\x80\"",
        "\"\xED\xA0\x80\"",
        "\"\xF0\x80\x80\x80\"",
        "\"\xF4\x90\x80\x80\"",
        "\"\xF5\x80\x80\x80\"",
        "\"cut off \xE2\x82\"",
        "\"\xFF\"");
    CHECK_FALSE(scanner_accepts(text));
}

TEST_CASE("a NUL byte ends nothing", "[protocol][scanner]") {
    CHECK_FALSE(scanner_accepts(std::string("1\0", 2)));
    CHECK_FALSE(scanner_accepts(std::string("\"\0\"", 3)));
    CHECK_FALSE(scanner_accepts(std::string("\0{}", 3)));
}

TEST_CASE(
    "a number must fit a double, and is refused at exactly the bound", "[protocol][scanner]") {
    // DBL_MAX is 2^1024 - 2^971; half a unit more rounds to infinity.
    const std::string bound =
        "17976931348623158079372897140530341507993413271003782693617377898044496829276475"
        "09466490179775872070963302864166928879109465555478519404026306574886715058206819"
        "08902000708383676273854845817711531764475730270069855571366959622842914819860834"
        "936475292719074168444365510704342711559699508093042880177904174497792";
    const std::string below = bound.substr(0, bound.size() - 1) + "1";
    SECTION("they fit") {
        CHECK(scanner_accepts(below));
        CHECK(scanner_accepts("-" + below + ".999"));
        CHECK(scanner_accepts("1.7976931348623157e308"));
        CHECK(scanner_accepts("0.00017976931348623157e312"));
        CHECK(scanner_accepts("1" + std::string(308, '0')));
        CHECK(scanner_accepts("0e999999999999999999999"));
        CHECK(scanner_accepts("-0.000e999999999999999999999"));
        CHECK(scanner_accepts("1e-999999999999999999999"));
        CHECK(scanner_accepts("0." + std::string(400, '0') + "1e700"));
    }
    SECTION("they do not") {
        CHECK_FALSE(scanner_accepts(bound));
        CHECK_FALSE(scanner_accepts(bound + ".0"));
        CHECK_FALSE(scanner_accepts("-" + bound));
        CHECK_FALSE(scanner_accepts("1.8e308"));
        CHECK_FALSE(scanner_accepts("0.00018e312"));
        CHECK_FALSE(scanner_accepts("1" + std::string(309, '0')));
        CHECK_FALSE(scanner_accepts("1e309"));
        CHECK_FALSE(scanner_accepts("1e999999999999999999999"));
        CHECK_FALSE(scanner_accepts("0." + std::string(400, '0') + "1e710"));
        CHECK_FALSE(scanner_accepts("[1e400]"));
    }
}

TEST_CASE("limits::kJsonDepthMax bounds what the scanner accepts", "[protocol][scanner][limits]") {
    const int most = limits::kJsonDepthMax;
    CHECK(is_valid_json(wrap(most, "[", "]")));
    CHECK(is_valid_json(wrap(most - 1, R"({"k":)", "}").insert(5 * (most - 1), "{}")));
    CHECK_FALSE(is_valid_json(wrap(most + 1, "[", "]")));
    CHECK_FALSE(is_valid_json(wrap(most, R"({"k":)", "}").insert(5 * most, "{}")));
    CHECK_FALSE(is_valid_json(wrap(1'000'000, "[", "]")));
    // Each container closes with its own bracket, at every depth.
    std::string crossed = wrap(most, "[", "]");
    crossed[static_cast<std::size_t>(most) + 70] = '}';
    CHECK_FALSE(is_valid_json(crossed));
}

TEST_CASE("one slice looks at about as many bytes as it may", "[protocol][scanner]") {
    const std::string text = "[\"" + std::string(100'000, 'x') + "\"," + std::string(50'000, ' ') +
                             std::string(50'000, '1') + "e-50000]";
    JsonScanner scanner;
    std::size_t before = 0;
    while (scanner.advance(text, 1000) == State::kMore) {
        CHECK(scanner.position() > before);
        CHECK(scanner.position() <= before + 1000 + JsonScanner::kPastBytesMax);
        before = scanner.position();
    }
    CHECK(scanner.state() == State::kValid);
    CHECK(scanner.position() == text.size());
}

TEST_CASE(
    "line ends between tokens are reported, those in strings are escaped", "[protocol][scanner]") {
    const auto has_line_ends = [](std::string_view text) {
        JsonScanner scanner;
        REQUIRE(scanner.advance(text, text.size()) == State::kValid);
        return scanner.has_line_ends();
    };
    CHECK(has_line_ends("[1,\n2]"));
    CHECK(has_line_ends("[1,2]\r"));
    CHECK_FALSE(has_line_ends(R"(["a\nb", 2 ])"));
}

TEST_CASE("the listener hears what is near the root", "[protocol][scanner]") {
    Heard heard;
    heard.text = R"( {"a" : {"b":[1, 2] ,"c":"x"}, "d":[true,{"e":{"f":0}}], "g":-1.5 } )";
    JsonScanner scanner(&heard);
    while (scanner.advance(heard.text, 1) == State::kMore) {
    }
    CHECK(scanner.state() == State::kValid);
    const std::vector<std::string> expected{
        R"(key 1 "a")",
        R"(key 2 "b")",
        "value 2 [1, 2]",
        R"(key 2 "c")",
        R"(value 2 "x")",
        R"(value 1 {"b":[1, 2] ,"c":"x"})",
        R"(key 1 "d")",
        "value 2 true",
        R"(value 2 {"e":{"f":0}})",
        R"(value 1 [true,{"e":{"f":0}}])",
        R"(key 1 "g")",
        "value 1 -1.5",
        "value 0 " + std::string(heard.text.substr(1, heard.text.size() - 2))};
    CHECK(heard.events == expected);
}

TEST_CASE("an object is distinguished from other values", "[protocol][scanner]") {
    CHECK(is_valid_json_object(" {\"a\":1} "));
    for (const char* text : {"", "[]", "null", "\"{}\"", "{", "{}}", "1"}) {
        CHECK_FALSE(is_valid_json_object(text));
    }
}
