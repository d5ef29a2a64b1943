// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/object_reader.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::api {
namespace {

TEST_CASE("a pointer escapes tilde and slash", "[agent][object_reader]") {
    CHECK(child_pointer("", "a") == "/a");
    CHECK(child_pointer("/a", "b/c~d") == "/a/b~1c~0d");
    CHECK(child_pointer("", "") == "/");
}

TEST_CASE("fields of the right type are read", "[agent][object_reader]") {
    const auto value =
        nlohmann::json::parse(R"({"s":"abc","b":true,"i":5,"n":0.5,"o":{},"a":[],"z":null})");
    FieldErrors errors;
    ObjectReader reader(value, "", errors);
    CHECK(reader.text("s", 3) == "abc");
    CHECK(reader.boolean("b") == true);
    CHECK(reader.integer("i", {5, 5, "max"}) == 5);
    CHECK(reader.number("n", 0.5, 0.5) == 0.5);
    CHECK(reader.object("o") != nullptr);
    CHECK(reader.array("a") != nullptr);
    CHECK(reader.any("z")->is_null());
    CHECK_FALSE(reader.text("missing", 1).has_value());
    reader.finish();
    CHECK(errors.empty());
}

TEST_CASE("a field of the wrong type or out of bounds is an error with its pointer", "[agent]") {
    const auto value = nlohmann::json::parse(
        R"({"s":"abcd","b":1,"i":6,"low":-1,"f":1.5,"n":"x","o":[],"a":{},"big":1e400})",
        nullptr,
        false);
    const auto fields =
        nlohmann::json::parse(R"({"s":"abcd","b":1,"i":6,"low":-1,"f":1.5,"n":"x","o":[],"a":{}})");
    CHECK(value.is_discarded());
    FieldErrors errors;
    ObjectReader reader(fields, "/x", errors);
    CHECK_FALSE(reader.text("s", 3).has_value());
    CHECK_FALSE(reader.boolean("b").has_value());
    CHECK_FALSE(reader.integer("i", {0, 5, "max"}).has_value());
    CHECK_FALSE(reader.integer("low", {0, 5, "max"}).has_value());
    CHECK_FALSE(reader.integer("f", {0, 5, "max"}).has_value());
    CHECK_FALSE(reader.number("n", 0, 1).has_value());
    CHECK(reader.object("o") == nullptr);
    CHECK(reader.array("a") == nullptr);
    reader.finish();
    REQUIRE(errors.size() == 8);
    CHECK(errors[0].pointer == "/x/s");
    CHECK(errors[2].message == "must be at most 5 (max)");
    CHECK(errors[3].message == "must be at least 0");
}

TEST_CASE("a number without a fraction is whole however it is written", "[agent][object_reader]") {
    const auto value = nlohmann::json::parse(
        R"({"a":17633.0,"b":1e3,"c":9007199254740992.0,"minus":-1.0,"large":1e16,"half":0.5})");
    FieldErrors errors;
    ObjectReader reader(value, "", errors);
    const IntegerBounds any{0, UINT64_MAX, "max"};
    CHECK(reader.integer("a", any) == 17633);
    CHECK(reader.integer("b", any) == 1000);
    CHECK(reader.integer("c", any) == 9007199254740992U);
    CHECK(errors.empty());
    CHECK_FALSE(reader.integer("minus", any).has_value());
    CHECK_FALSE(reader.integer("large", any).has_value());
    CHECK_FALSE(reader.integer("half", any).has_value());
    REQUIRE(errors.size() == 3);
    CHECK(errors[0].message == "must be at least 0");
    CHECK(errors[1].message == "must be a whole number");
    CHECK(errors[2].message == "must be a whole number");
}

TEST_CASE("an unknown field is an error", "[agent][object_reader]") {
    const auto value = nlohmann::json::parse(R"({"a":1,"memory_m":1})");
    FieldErrors errors;
    ObjectReader reader(value, "", errors);
    (void)reader.integer("a", {});
    reader.finish();
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].pointer == "/memory_m");
}

TEST_CASE("a body of a thousand errors gives a bounded answer", "[agent][object_reader]") {
    nlohmann::json value;
    for (int i = 0; i < 1000; ++i) {
        value["x" + std::to_string(i)] = 1;
    }
    FieldErrors errors;
    ObjectReader reader(value, "", errors);
    reader.finish();
    CHECK(errors.size() == 32);
}

TEST_CASE("what is not an object is one error", "[agent][object_reader]") {
    const nlohmann::json value = nlohmann::json::array();
    FieldErrors errors;
    ObjectReader reader(value, "", errors);
    CHECK_FALSE(reader.text("a", 1).has_value());
    reader.finish();
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].message == "must be an object");
}

TEST_CASE("the error for an unknown field lists the known ones", "[agent][object_reader]") {
    const auto value = nlohmann::json::parse(R"({"code":"1","timeout":5})");
    FieldErrors errors;
    ObjectReader reader(value, "", errors);
    CHECK(reader.text("code", 10) == "1");
    CHECK_FALSE(reader.integer("timeout_ms", {1, 10, "max"}).has_value());
    reader.finish();
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].pointer == "/timeout");
    CHECK(
        errors[0].message ==
        "is not a field that this server knows; here it knows code, timeout_ms");
}

}  // namespace
}  // namespace cellkeep::api
