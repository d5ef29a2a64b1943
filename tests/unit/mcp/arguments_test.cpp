// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/arguments.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <string>

namespace cellkeep::mcp {
namespace {

const nlohmann::json& schema() {
    static const nlohmann::json one = nlohmann::json::parse(R"({
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": 3},
            "number": {"type": "integer", "minimum": 0, "maximum": 10},
            "flag": {"type": "boolean"},
            "choice": {"type": "string", "enum": ["a", "b"]}},
        "required": ["text"]})");
    return one;
}

std::string wrong(const std::string& arguments) {
    return find_wrong_arguments(schema(), nlohmann::json::parse(arguments));
}

TEST_CASE("arguments that fit the schema pass", "[mcp][arguments]") {
    CHECK(wrong(R"({"text":"a"})").empty());
    CHECK(wrong(R"({"text":"abc","number":0,"flag":true,"choice":"b"})").empty());
    CHECK(wrong(R"({"text":"a","number":10})").empty());
}

TEST_CASE("arguments that do not fit are named", "[mcp][arguments]") {
    CHECK(wrong("{}") == "\"text\" is missing.");
    CHECK(wrong("[]") == "The arguments must be an object.");
    CHECK(wrong(R"({"text":1})") == "\"text\" must be of type string.");
    CHECK(wrong(R"({"text":null})") == "\"text\" must be of type string.");
    CHECK(wrong(R"({"text":""})") == "\"text\" must be at least 1 bytes.");
    CHECK(wrong(R"({"text":"abcd"})") == "\"text\" must be at most 3 bytes.");
    CHECK(wrong(R"({"text":"a","number":-1})") == "\"number\" must be at least 0.");
    CHECK(wrong(R"({"text":"a","number":11})") == "\"number\" must be at most 10.");
    CHECK(wrong(R"({"text":"a","number":1.0})") == "\"number\" must be of type integer.");
    CHECK(wrong(R"({"text":"a","number":"1"})") == "\"number\" must be of type integer.");
    CHECK(
        wrong(R"({"text":"a","number":18446744073709551615})") == "\"number\" must be at most 10.");
    CHECK(wrong(R"({"text":"a","flag":1})") == "\"flag\" must be of type boolean.");
    CHECK(wrong(R"({"text":"a","choice":"c"})") == R"("choice" must be one of ["a","b"].)");
    CHECK(wrong(R"({"text":"a","other":1})") == "There is no argument \"other\".");
    CHECK(
        wrong(R"({"flag":1,"number":11})") ==
        "\"flag\" must be of type boolean. \"number\" must be at most 10. \"text\" is missing.");
}

TEST_CASE("an argument that was not given is its fallback", "[mcp][arguments]") {
    const nlohmann::json given = {{"text", "x"}, {"number", 5}, {"flag", true}};
    const nlohmann::json none = nlohmann::json::object();
    CHECK(text_argument(given, "text", "f") == "x");
    CHECK(text_argument(none, "text", "f") == "f");
    CHECK(number_argument(given, "number", 7) == 5);
    CHECK(number_argument(none, "number", 7) == 7);
    CHECK(flag_argument(given, "flag"));
    CHECK_FALSE(flag_argument(none, "flag"));
}

}  // namespace
}  // namespace cellkeep::mcp
