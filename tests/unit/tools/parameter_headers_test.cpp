// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/connection/parameter_headers.hpp"

#include "kernel-manager/tools/limits.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace cellkeep::tools {
namespace {

using nlohmann::json;

json marked(const json& mark, const std::string& type = "string") {
    return {{"type", type}, {"x-mcp-header", mark}};
}

json schema_of(const json& properties) {
    return {{"type", "object"}, {"properties", properties}};
}

TEST_CASE("a schema says which arguments go into headers", "[tools][headers]") {
    const auto none = read_parameter_headers(schema_of({{"a", {{"type", "string"}}}}));
    REQUIRE(none.has_value());
    CHECK(none.value().empty());
    const json inner = schema_of({{"b", marked("B", "integer")}});
    const auto some = read_parameter_headers(schema_of({{"a", inner}, {"c", marked("c-1")}}));
    REQUIRE(some.has_value());
    REQUIRE(some.value().size() == 2);
    CHECK(some.value()[0].name == "B");
    CHECK(some.value()[0].path == std::vector<std::string>{"a", "b"});
    CHECK(some.value()[1].path == std::vector<std::string>{"c"});
}

TEST_CASE("an argument of this name is no header", "[tools][headers]") {
    const json named = schema_of({{"x-mcp-header", {{"type", "string"}}}});
    json held = schema_of({{"a", {{"type", "object"}}}});
    held["properties"]["a"]["default"] = {{"x-mcp-header", "A"}};
    held["properties"]["a"]["enum"] = {{{"x-mcp-header", "A"}}};
    for (const json& schema : {named, held}) {
        const auto read = read_parameter_headers(schema);
        REQUIRE(read.has_value());
        CHECK(read.value().empty());
    }
}

TEST_CASE("a header that cannot be one is refused", "[tools][headers]") {
    for (const json& mark :
         {json(""),
          json("a b"),
          json("a:b"),
          json("a\r\nX: y"),
          json("\u00e4"),
          json(5),
          json(nullptr),
          json(std::string(65, 'a'))}) {
        CAPTURE(mark.dump());
        CHECK(read_parameter_headers(schema_of({{"a", marked(mark)}})).has_error());
    }
    for (const char* type : {"number", "object", "array", "null", ""}) {
        CAPTURE(type);
        CHECK(read_parameter_headers(schema_of({{"a", marked("A", type)}})).has_error());
    }
    CHECK(read_parameter_headers(schema_of({{"a", {{"x-mcp-header", "A"}}}})).has_error());
    CHECK(read_parameter_headers(schema_of({{"a", marked("N")}, {"b", marked("n")}})).has_error());
}

TEST_CASE("a header that no argument surely has is refused", "[tools][headers]") {
    const json one = schema_of({{"a", marked("A")}});
    CHECK(read_parameter_headers(one).has_value());
    for (const json& schema :
         {marked("A"),
          json{{"anyOf", {one}}},
          json{{"items", one}},
          json{{"then", one}},
          json{{"not", one}},
          json{{"$defs", {{"d", marked("A")}}}},
          json{{"patternProperties", {{"^a", marked("A")}}}},
          json{{"additionalProperties", marked("A")}},
          schema_of({{"a", {{"type", "array"}, {"items", marked("A")}}}}),
          schema_of({{"a", {{"oneOf", {marked("A")}}}}})}) {
        CAPTURE(schema.dump());
        CHECK(read_parameter_headers(schema).has_error());
    }
}

TEST_CASE("a tool has up to kParameterHeadersMax of them", "[tools][headers]") {
    json properties = json::object();
    while (properties.size() < kParameterHeadersMax) {
        const std::string name = "p" + std::to_string(properties.size());
        properties[name] = marked(name);
    }
    CHECK(read_parameter_headers(schema_of(properties)).value().size() == kParameterHeadersMax);
    properties["one-more"] = marked("one-more");
    CHECK(
        read_parameter_headers(schema_of(properties)).error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("what an argument is becomes its header", "[tools][headers]") {
    const std::vector<ParameterHeader> headers{{"P", {"a", "b"}}};
    const auto value_of = [&](const json& value) -> std::string {
        const json arguments = {{"a", {{"b", value}}}};
        const auto made = repeat_arguments(headers, arguments.dump());
        REQUIRE(made.has_value());
        REQUIRE(made.value().size() < 2);
        return made.value().empty() ? "none" : made.value()[0].second;
    };
    CHECK(value_of("us-west1") == "us-west1");
    CHECK(value_of(-7) == "-7");
    CHECK(value_of(true) == "true");
    CHECK(value_of("line1\nline2") == "=?base64?bGluZTEKbGluZTI=?=");
    for (const json& other : {json(nullptr), json(1.5), json::object(), json::array({"a"})}) {
        CAPTURE(other.dump());
        CHECK(value_of(other) == "none");
    }
    for (const char* arguments : {"{}", R"({"a":1})", R"({"b":"x"})", R"({"a":{}})"}) {
        CHECK(repeat_arguments(headers, arguments).value().empty());
    }
    for (const char* wrong : {"", "[]", "{", "\"a\""}) {
        CHECK(repeat_arguments(headers, wrong).has_error());
        CHECK(repeat_arguments({}, wrong).has_value());
    }
}

TEST_CASE("a header has up to kParameterHeaderBytesMax", "[tools][headers]") {
    const std::vector<ParameterHeader> headers{{"P", {"a"}}};
    const json most = {{"a", std::string(kParameterHeaderBytesMax, 'x')}};
    CHECK(repeat_arguments(headers, most.dump()).has_value());
    const json more = {{"a", std::string(kParameterHeaderBytesMax + 1, 'x')}};
    CHECK(repeat_arguments(headers, more.dump()).error().code() == ErrorCode::kLimitExceeded);
}

}  // namespace
}  // namespace cellkeep::tools
