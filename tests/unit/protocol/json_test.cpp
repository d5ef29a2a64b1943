// SPDX-License-Identifier: Apache-2.0
#include "protocol/json.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <limits>
#include <string>

using Catch::Matchers::Contains;
using cellkeep::ErrorCode;
using cellkeep::protocol::dump_json;
using cellkeep::protocol::is_json;
using cellkeep::protocol::parse_json;
using cellkeep::protocol::parse_json_object;
using nlohmann::json;

namespace limits = cellkeep::limits;

TEST_CASE("JSON text becomes the value it spells", "[protocol][json]") {
    const std::string text =
        R"({"a":[1,-2,3.5,true,false,null,"\u00e9\ud83d\ude00",{}],"b":{"c":[[],[{}]]},"":18446744073709551615})";
    const auto value = parse_json(text, "document");
    REQUIRE(value.has_value());
    CHECK(value.value() == json::parse(text));
    CHECK(parse_json(" 5 ", "document").value() == 5);
    CHECK(parse_json(dump_json(value.value()), "document").value() == value.value());
}

TEST_CASE("of a repeated key the last one counts", "[protocol][json]") {
    const auto value = parse_json(R"({"a":{"x":1},"a":{"y":2}})", "document");
    REQUIRE(value.has_value());
    CHECK(value.value() == json{{"a", {{"y", 2}}}});
}

TEST_CASE("what is not JSON is refused, never thrown", "[protocol][json]") {
    const std::string text = GENERATE(
        std::string(""),
        std::string(" "),
        std::string("{"),
        std::string("]"),
        std::string("{}}"),
        std::string("{} {}"),
        std::string("[1,]"),
        std::string("{\"a\":1,}"),
        std::string("{\"a\"}"),
        std::string("{a:1}"),
        std::string("{'a':1}"),
        std::string("[1 2]"),
        std::string("[01]"),
        std::string("[+1]"),
        std::string("[.5]"),
        std::string("[1e]"),
        std::string("[1e999]"),
        std::string("NaN"),
        std::string("[Infinity]"),
        std::string("[-Infinity]"),
        std::string("[nul]"),
        std::string("[TRUE]"),
        std::string("// comment\n1"),
        std::string("/* comment */1"),
        std::string("\"open"),
        std::string("\"tab\tinside\""),
        std::string("\"\\x41\""),
        std::string("\"\\ud800\""),
        std::string("\"\\udc00\\ud800\""),
        std::string("\"\xff\""),
        std::string("\"\xc0\xaf\""),
        std::string("\"\xed\xa0\x80\""),
        std::string("\"\xf4\x90\x80\x80\""),
        std::string("\"\xe2\x82\""),
        std::string("{\"\xfe\":1}"),
        std::string("1\0", 2),
        std::string("[1]\0", 4));
    CAPTURE(text);
    const auto value = parse_json(text, "document");
    REQUIRE(value.has_error());
    CHECK(value.error().code() == ErrorCode::kProtocol);
    CHECK_THAT(value.error().message(), Contains("document: not valid JSON at byte"));
}

TEST_CASE("limits::kJsonDepthMax bounds the nesting", "[protocol][json][limits]") {
    const auto nested = [](std::size_t depth, const std::string& open, const std::string& close) {
        std::string text;
        for (std::size_t i = 0; i < depth; ++i) {
            text += open;
        }
        text += "1";
        for (std::size_t i = 0; i < depth; ++i) {
            text += close;
        }
        return text;
    };
    const auto depth = static_cast<std::size_t>(limits::kJsonDepthMax);
    CHECK(parse_json(nested(depth, "[", "]"), "document").has_value());
    CHECK(parse_json(nested(depth, R"({"a":)", "}"), "document").has_value());
    for (const std::size_t too_deep : {depth + 1, std::size_t{1'000'000}}) {
        const auto value = parse_json(nested(too_deep, "[", "]"), "document");
        REQUIRE(value.has_error());
        CHECK(value.error().code() == ErrorCode::kProtocol);
        CHECK_THAT(value.error().message(), Contains("deeper"));
        CHECK(parse_json(nested(too_deep, R"({"a":)", "}"), "document").has_error());
    }
    CHECK(is_json(nested(depth + 1, "[", "]")));
    CHECK(is_json(nested(1'000'000, "[", "]")));
    CHECK_FALSE(is_json(nested(depth + 1, "[", "")));
    CHECK_FALSE(is_json(std::string("1\0", 2)));
    // Refused where it gets too deep, whether or not it would ever have closed.
    CHECK_THAT(
        parse_json(std::string(1'000'000, '['), "document").error().message(), Contains("deeper"));
}

namespace {

void check_too_many_values(const std::string& text) {
    const auto value = parse_json(text, "document");
    REQUIRE(value.has_error());
    CHECK(value.error().code() == ErrorCode::kLimitExceeded);
    CHECK_THAT(value.error().message(), Contains("document: more than 2000000 values"));
}

}  // namespace

TEST_CASE("limits::kJsonValuesMax bounds the values", "[protocol][json][limits]") {
    // The array is a value, too.
    std::string text = "[";
    for (std::size_t i = 2; i < limits::kJsonValuesMax; ++i) {
        text += "0,";
    }
    CHECK(parse_json(text + "[]]", "document").has_value());
    check_too_many_values(text + "0,[]]");
    check_too_many_values(text + "[{}]]");
}

TEST_CASE("limits::kJsonValuesMax counts members, also replaced ones", "[protocol][json][limits]") {
    std::string text = "{";
    for (std::size_t i = 2; i < limits::kJsonValuesMax; ++i) {
        text += R"("a":0,)";
    }
    CHECK(parse_json(text + R"("a":null})", "document").has_value());
    check_too_many_values(text + R"("a":0,"a":null})");
}

TEST_CASE("an error message does not quote the peer's bytes", "[protocol][json]") {
    const auto value = parse_json("\"" + std::string(100'000, 'x') + "\xff", "document");
    REQUIRE(value.has_error());
    CHECK(value.error().message().size() < 100);
}

TEST_CASE("parse_json_object wants an object", "[protocol][json]") {
    CHECK(parse_json_object("{}", "content").has_value());
    for (const char* text : {"[]", "1", "\"{}\"", "null", "true", "[{}]"}) {
        CAPTURE(text);
        const auto value = parse_json_object(text, "content");
        REQUIRE(value.has_error());
        CHECK(value.error().code() == ErrorCode::kProtocol);
        CHECK_THAT(value.error().message(), Contains("content: not a JSON object"));
    }
}

TEST_CASE("invalid UTF-8 is dumped as U+FFFD", "[protocol][json]") {
    CHECK(dump_json(json{{"a", "x\xffy"}}) == "{\"a\":\"x\xef\xbf\xbdy\"}");
    CHECK(dump_json(json(std::numeric_limits<double>::quiet_NaN())) == "null");
}
