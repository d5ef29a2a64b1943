// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/headers.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::http {
namespace {

TEST_CASE("a header is found whatever the case of its name", "[http][headers]") {
    Headers headers;
    headers.add("Content-Type", "a");
    headers.add("content-type", "b");
    REQUIRE(headers.find("CONTENT-TYPE") != nullptr);
    CHECK(headers.get("cOnTeNt-tYpE") == "a");
    CHECK(headers.find("Content") == nullptr);
    CHECK(headers.find("Content-Type ") == nullptr);
    CHECK(headers.get("Accept").empty());
}

TEST_CASE("set replaces every field of the name", "[http][headers]") {
    Headers headers;
    headers.add("A", "1");
    headers.add("a", "2");
    headers.add("B", "3");
    headers.set("A", "4");
    CHECK(headers.all().size() == 2);
    CHECK(headers.get("a") == "4");
    CHECK(headers.get("b") == "3");
}

TEST_CASE("comparing without case looks at ASCII letters only", "[http][headers]") {
    CHECK(equals_ignoring_case("Bearer", "bEARER"));
    CHECK_FALSE(equals_ignoring_case("Bearer", "Bearer "));
    CHECK_FALSE(equals_ignoring_case("[", "{"));
    CHECK_FALSE(equals_ignoring_case("@", "`"));
}

}  // namespace
}  // namespace cellkeep::http
