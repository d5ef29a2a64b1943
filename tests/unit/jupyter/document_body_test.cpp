// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/document_body.hpp"

#include "kernel-manager/jupyter/rest/rest_body.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>

namespace cellkeep::jupyter::test {
namespace {

Result<nlohmann::json> read_text(const std::string& body) {
    BOOST_OUTCOME_TRY(auto parsed, parse_body(body));
    return read_document_object(std::move(parsed));
}

DocumentOrder read(const std::string& body, const RestSession& present = {}) {
    const auto object = read_text(body);
    REQUIRE(object.has_value());
    const auto order = read_document_order(object.value(), present);
    REQUIRE(order.has_value());
    return order.value();
}

TEST_CASE("a body that is no document is refused", "[rest][documents]") {
    for (const char* body :
         {"",
          " ",
          "null",
          "[]",
          "1",
          "{",
          R"({"notebook":1})",
          R"({"notebook":{"path":1}})",
          R"({"notebook":{"name":[]}})"}) {
        CAPTURE(body);
        const auto object = read_text(body);
        REQUIRE(object.has_error());
        CHECK(object.error().code() == ErrorCode::kInvalidArgument);
    }
}

TEST_CASE("a document with a field of the wrong type is refused", "[rest][documents]") {
    for (const char* body :
         {R"({"path":1})",
          R"({"name":[]})",
          R"({"type":{}})",
          R"({"kernel":1})",
          R"({"kernel":"python3"})"}) {
        CAPTURE(body);
        const auto object = read_text(body);
        REQUIRE(object.has_value());
        CHECK(read_document_order(object.value(), {}).has_error());
    }
    for (const char* kernel : {R"({"id":1})", R"({"name":[]})"}) {
        CAPTURE(kernel);
        CHECK(read_kernel_choice(nlohmann::json::parse(kernel)).has_error());
    }
}

TEST_CASE("both shapes of the interface name the same document", "[rest][documents]") {
    const DocumentOrder newer = read(R"({"path":"a/x.ipynb","type":"notebook"})");
    CHECK(newer.document.path == "a/x.ipynb");
    CHECK(newer.document.type == "notebook");
    const DocumentOrder older = read(R"({"notebook":{"path":"a/x.ipynb"}})");
    CHECK(older.document.path == "a/x.ipynb");
    CHECK(older.document.type == "notebook");
    CHECK(read(R"({"notebook":{"name":"x"}})").document.path == "x");
}

TEST_CASE("a change keeps what it does not name", "[rest][documents]") {
    RestSession present;
    present.id = "1";
    present.path = "a.ipynb";
    present.name = "a";
    present.type = "notebook";
    present.kernel_id = "2";
    const DocumentOrder order = read(R"({"path":"b.ipynb","name":null})", present);
    CHECK(order.document.path == "b.ipynb");
    CHECK(order.document.name == "a");
    CHECK(order.document.id == "1");
    CHECK(order.document.kernel_id == "2");
    CHECK(order.kernel.empty());
}

TEST_CASE("a new document needs a path and a type", "[rest][documents]") {
    const auto missing = [](const char* body) {
        const char* name = find_missing_field(nlohmann::json::parse(body));
        return std::string(name == nullptr ? "" : name);
    };
    CHECK(missing("{}") == "path");
    CHECK(missing(R"({"path":null,"type":"file"})") == "path");
    CHECK(missing(R"({"path":"a"})") == "type");
    CHECK(missing(R"({"path":"a","type":null})") == "type");
    CHECK(missing(R"({"path":"a","type":"file"})").empty());
}

TEST_CASE("only a notebook starts its kernel in its own directory", "[rest][documents]") {
    CHECK(directory_of(read(R"({"path":"a/b/x.ipynb","type":"notebook"})").document) == "a/b");
    CHECK(directory_of(read(R"({"path":"x.ipynb","type":"notebook"})").document).empty());
    CHECK(directory_of(read(R"({"path":"a/b","type":"console"})").document).empty());
    CHECK(directory_of(read(R"({"path":"../x.ipynb","type":"notebook"})").document).empty());
}

}  // namespace
}  // namespace cellkeep::jupyter::test
