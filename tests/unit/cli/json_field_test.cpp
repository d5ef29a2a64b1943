// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/json_field.hpp"

#include <catch2/catch.hpp>

using cellkeep::cli::array_field;
using cellkeep::cli::number_field;
using cellkeep::cli::text_field;
using nlohmann::json;

TEST_CASE("a field of the wanted type is read", "[cli][json]") {
    const json object{{"text", "t"}, {"number", 2.5}, {"whole", 3}, {"list", {1, 2}}};
    CHECK(text_field(object, "text", "f") == "t");
    CHECK(number_field(object, "number", 1) == 2.5);
    CHECK(number_field(object, "whole", 1) == 3);
    CHECK(array_field(object, "list").size() == 2);
}

TEST_CASE("a field that is missing or of another type is not read, never thrown", "[cli][json]") {
    const json wrong = GENERATE(json(nullptr), json(true), json::object({{"a", 1}}));
    CAPTURE(wrong);
    const json object{{"field", wrong}};
    for (const char* name : {"field", "missing"}) {
        CHECK(text_field(object, name, "f") == "f");
        CHECK(text_field(object, name).empty());
        CHECK(number_field(object, name, 1.5) == 1.5);
        CHECK(array_field(object, name).empty());
    }
    CHECK(text_field({{"field", 7}}, "field", "f") == "f");
    CHECK(text_field({{"field", json::array({"t"})}}, "field", "f") == "f");
    CHECK(number_field({{"field", "7"}}, "field", 1.5) == 1.5);
    CHECK(array_field({{"field", "[]"}}, "field").is_array());
}

TEST_CASE("an answer that is no object has no fields", "[cli][json]") {
    const json answer = GENERATE(json(nullptr), json::array({1}), json("text"), json(7));
    CAPTURE(answer);
    CHECK(text_field(answer, "field", "f") == "f");
    CHECK(number_field(answer, "field", 1.5) == 1.5);
    CHECK(array_field(answer, "field").empty());
}
