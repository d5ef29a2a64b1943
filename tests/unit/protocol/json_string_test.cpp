// SPDX-License-Identifier: Apache-2.0
#include "protocol/json_string.hpp"

#include "protocol/json.hpp"

#include <catch2/catch.hpp>

#include <string>

using cellkeep::protocol::cut_json_string;
using cellkeep::protocol::inside_json_string;
using cellkeep::protocol::read_json_string;
using cellkeep::protocol::read_json_strings;
using nlohmann::json;

TEST_CASE("a JSON string is read as the parser reads it", "[protocol][json_string]") {
    const std::string text = GENERATE(
        R"("")",
        R"("plain")",
        R"("é😀 ")",
        R"("\"\\\/\b\f\n\r\t")",
        R"("\u0041\u00e9\u20ac\uD83D\uDE00\u0000")",
        R"("a\nb\nc é \uD83D\uDE00")");
    CHECK(read_json_string(text) == json::parse(text).get<std::string>());
}

TEST_CASE("other values are no strings", "[protocol][json_string]") {
    for (const char* text : {"", "null", "1", "[\"a\"]", "{\"a\":\"b\"}", "true"}) {
        CAPTURE(text);
        CHECK(read_json_string(text).empty());
        CHECK(inside_json_string(text).empty());
    }
}

TEST_CASE("the beginning of a string ends with a whole character", "[protocol][json_string]") {
    const std::string text = R"("aé\n\uD83D\uDE00b")";  // 1, 2, 1, 4 and 1 bytes
    const std::string whole = read_json_string(text);
    REQUIRE(whole.size() == 9);
    const std::vector<std::size_t> expected{0, 1, 1, 3, 4, 4, 4, 4, 8, 9, 9};
    for (std::size_t most = 0; most < expected.size(); ++most) {
        CAPTURE(most);
        CHECK(read_json_string(text, most) == whole.substr(0, expected[most]));
    }
}

TEST_CASE("a cut leaves two strings", "[protocol][json_string]") {
    const std::string inside = R"(ab\\é\"\u20ac\uD83D\uDE00😀\n\\\\x)";
    const auto quoted = [](std::string_view part) { return '"' + std::string(part) + '"'; };
    const std::string whole = read_json_string(quoted(inside));
    for (std::size_t most = 1; most <= inside.size() + 2; ++most) {
        std::string joined;
        std::string_view left = inside;
        while (!left.empty()) {
            const std::size_t cut = cut_json_string(left, most);
            REQUIRE(cut > 0);
            REQUIRE(cut <= std::max<std::size_t>(most, 12));
            const auto piece = cellkeep::protocol::parse_json(quoted(left.substr(0, cut)), "piece");
            CAPTURE(most, left.substr(0, cut));
            REQUIRE(piece.has_value());
            joined += piece.value().get<std::string>();
            left.remove_prefix(cut);
        }
        CHECK(joined == whole);
    }
}

TEST_CASE("the strings of an array are read up to a bound", "[protocol][json_string]") {
    using Strings = std::vector<std::string>;
    const std::string array = R"( ["one", 2, {"a":["x"]}, "t\"wo\\", null, "three"] )";
    const std::string_view text = std::string_view(array).substr(1, array.size() - 2);
    const auto all = read_json_strings(text, 1000);
    CHECK(all.complete);
    CHECK(all.strings == Strings{"one", "t\"wo\\", "three"});
    for (std::size_t most = 0; most < text.size(); ++most) {
        CAPTURE(most);
        const auto some = read_json_strings(text, most);
        CHECK_FALSE(some.complete);
        REQUIRE(some.strings.size() <= all.strings.size());
        for (std::size_t i = 0; i < some.strings.size(); ++i) {
            CHECK(all.strings[i].starts_with(some.strings[i]));
        }
    }
    for (const char* other : {"", "[]", "null", "\"a\"", "{\"a\":\"b\"}"}) {
        CHECK(read_json_strings(other, 1000).strings.empty());
    }
}
