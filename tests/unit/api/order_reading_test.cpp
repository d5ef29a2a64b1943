// SPDX-License-Identifier: Apache-2.0
//
// Bodies that another thread reads (http::kTextReadAtOnceBytesMax) get the answers of short ones.
#include "kernel-manager/api/bodies/order_reading.hpp"

#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::api::test {
namespace {

/// White space around a value means nothing in JSON.
std::string lengthened(const std::string& body) {
    const std::string blank(http::kTextReadAtOnceBytesMax, ' ');
    return blank + body + blank;
}

/// A request of that many bytes whose code is one long line.
std::string with_length(std::size_t size) {
    const std::string begin = R"({"code":")";
    const std::string end = R"("})";
    return begin + std::string(size - begin.size() - end.size(), 'x') + end;
}

TEST_CASE("bodies around the bound run the same", "[agent][body][limits]") {
    Api api;
    const auto session = api.backend.add();
    for (const std::size_t size :
         {std::size_t{100},
          http::kTextReadAtOnceBytesMax,
          http::kTextReadAtOnceBytesMax + 1,
          std::size_t{200'000}}) {
        CAPTURE(size);
        CHECK(api.ask("POST", kExecutions, with_length(size)).status == 200);
        REQUIRE_FALSE(session->requests.empty());
        CHECK((session->requests.back().code == std::string(size - 11, 'x')));
    }
    CHECK(session->requests.size() == 4);
}

TEST_CASE("a long body is refused as a short one is", "[agent][body]") {
    Api api;
    const auto session = api.backend.add();
    std::string many = R"({"code":"1","metadata":{"a":[0)";
    for (std::size_t values = 0; values < limits::kHttpBodyJsonValuesMax; ++values) {
        many += ",0";
    }
    const std::string bodies[] = {
        "{",
        R"({"code":"1"}})",
        R"({"code":"1",})",
        "{\"code\":\"\xff\"}",
        std::string("{\"code\":\"1\"\0}", 13),
        many + "]}}",
        "null",
        "[]",
        R"("code")",
        "{}",
        R"({"code":1})",
        R"({"code":"1","cod":"2"})",
        R"({"code":"1","timeout_ms":0})",
        R"({"code":"1","language":"cobol"})",
        R"({"code":"1","files":[{"path":"a","base64":"="}]})",
        R"({"code":"1","files":[{"path":"../a","text":""}]})",
        R"({"code":"1","files":[{"path":"a"}]})"};
    for (const std::string& body : bodies) {
        CAPTURE(body.substr(0, 60));
        const auto expected = api.ask("POST", kExecutions, body);
        const auto answer = api.ask("POST", kExecutions, lengthened(body));
        CHECK((expected.status == 400 || expected.status == 422));
        CHECK(answer.status == expected.status);
        CHECK(answer.json["type"] == expected.json["type"]);
        const nlohmann::json none;
        CHECK(answer.json.value("errors", none) == expected.json.value("errors", none));
    }
    CHECK(
        api.ask("POST", kExecutions, lengthened("{}"), {{"Content-Type", "text/plain"}}).status ==
        415);
    CHECK(session->requests.empty());
    CHECK(api.ask("POST", kExecutions, lengthened(R"({"code":"1"})")).status == 200);
}

TEST_CASE("long bodies of every route are read", "[agent][body]") {
    Api api;
    const auto session = api.backend.add();
    const std::string one = "/v1/sessions/ses_1";
    CHECK(api.ask("POST", "/v1/sessions", lengthened(R"({"metadata":{"a":1}})")).status == 201);
    CHECK(api.ask("POST", "/v1/sessions", lengthened(R"({"a":1})")).status == 422);
    CHECK(api.ask("PATCH", one, lengthened(R"({"metadata":{"a":1}})")).status == 200);
    CHECK(api.ask("PATCH", one, lengthened("[]")).status == 422);
    CHECK(api.ask("POST", one + "/interrupt", lengthened("{}")).status == 204);
    CHECK(api.ask("POST", one + "/interrupt", lengthened(R"({"language":1})")).status == 422);
    CHECK(api.ask("POST", "/v1/executions", lengthened(R"({"code":"1"})")).status == 200);
    CHECK(api.ask("POST", "/v1/executions", lengthened(R"({"code":[]})")).status == 422);
}

TEST_CASE("a key knows a long body that comes again", "[agent][body][one-shot]") {
    Api api;
    const auto body = [](const char* text) {
        return lengthened(
            std::string(R"({"code":")") + text + R"(","idempotency_key":"k","reasoning":"r"})");
    };
    const auto first = api.ask("POST", "/v1/executions", body("1"));
    REQUIRE(first.status == 200);
    CHECK(api.ask("POST", "/v1/executions", body("1")).json["id"] == first.json["id"]);
    CHECK(api.ask("POST", "/v1/executions", body("2")).status == 422);
}

}  // namespace
}  // namespace cellkeep::api::test
