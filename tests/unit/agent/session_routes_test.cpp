// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/agent/agent_api.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::agent::test {
namespace {

TEST_CASE("creating a session answers 201 with its place and its owner", "[agent][sessions]") {
    Api api;
    const auto answer =
        api.ask("POST", "/v1/sessions", R"({"metadata":{"a":1},"limits":{"memory_mb":64}})");
    CHECK(answer.status == 201);
    CHECK(answer.headers.get("Location") == "/v1/sessions/ses_1");
    CHECK(answer.json["id"] == "ses_1");
    CHECK(answer.json["owner"] == "admin");
    CHECK(answer.json["metadata"]["a"] == 1);
    CHECK(answer.json["limits"]["memory_mb"] == 64);
}

TEST_CASE("an empty body creates the default session", "[agent][sessions]") {
    Api api;
    CHECK(api.ask("POST", "/v1/sessions", "", {{"Content-Type", ""}}).status == 201);
}

TEST_CASE("a refusal of the service becomes its status", "[agent][sessions]") {
    const auto [code, status] = GENERATE(table<ErrorCode, int>({
        {ErrorCode::kLimitExceeded, 429},
        {ErrorCode::kUnavailable, 503},
        {ErrorCode::kTimeout, 504},
        {ErrorCode::kInvalidArgument, 422},
    }));
    Api api;
    api.backend.failure = Error(code, "no");
    CHECK(api.ask("POST", "/v1/sessions", "{}").status == status);
    CHECK(api.ask("POST", "/v1/executions", R"({"code":""})").status == status);
    CHECK(api.backend.removed == 0);
}

TEST_CASE("a bad body creates nothing", "[agent][sessions]") {
    Api api;
    const auto answer = api.ask("POST", "/v1/sessions", R"({"language":"cobol","x":1})");
    CHECK(answer.status == 422);
    CHECK(answer.json["errors"].size() == 2);
    CHECK(api.ask("POST", "/v1/sessions", "{").status == 400);
    CHECK(api.ask("POST", "/v1/sessions", "{}", {{"Content-Type", "text/html"}}).status == 415);
    CHECK(api.backend.sessions.empty());
}

TEST_CASE("a session is found by its id and its kernel id, and removed", "[agent][sessions]") {
    Api api;
    api.backend.add();
    CHECK(api.ask("GET", "/v1/sessions/ses_1").json["id"] == "ses_1");
    CHECK(api.ask("GET", "/v1/sessions/kernel-ses_1").json["id"] == "ses_1");
    CHECK(api.ask("DELETE", "/v1/sessions/kernel-ses_1").status == 204);
    CHECK(api.ask("DELETE", "/v1/sessions/ses_1").status == 404);
}

TEST_CASE("listing is paged, oldest first", "[agent][sessions]") {
    Api api;
    for (int i = 0; i < 5; ++i) {
        api.backend.add();
    }
    auto page = api.ask("GET", "/v1/sessions?limit=2").json;
    CHECK(page["sessions"][0]["id"] == "ses_1");
    CHECK(page["next"] == "ses_2");
    page = api.ask("GET", "/v1/sessions?limit=2&after=ses_2").json;
    CHECK(page["sessions"][0]["id"] == "ses_3");
    page = api.ask("GET", "/v1/sessions?limit=2&after=ses_4").json;
    CHECK(page["sessions"].size() == 1);
    CHECK(page["next"].is_null());
    CHECK(api.ask("GET", "/v1/sessions?after=ses_5").json["sessions"].empty());
    CHECK(api.ask("GET", "/v1/sessions?limit=1000").status == 200);
}

TEST_CASE("a bad page is refused", "[agent][sessions]") {
    Api api;
    api.backend.add();
    for (const char* query :
         {"limit=0",
          "limit=1001",
          "limit=-1",
          "limit=x",
          "limit=",
          "limit=1x",
          "limit=1.0",
          "after=ses_9",
          "after="}) {
        CAPTURE(query);
        CHECK(api.ask("GET", std::string("/v1/sessions?") + query).status == 400);
    }
}

TEST_CASE("interrupt is 204, restart 200 with the session", "[agent][sessions]") {
    Api api;
    const auto session = api.backend.add();
    CHECK(api.ask("POST", "/v1/sessions/ses_1/interrupt").status == 204);
    CHECK(api.ask("POST", "/v1/sessions/ses_1/restart").json["id"] == "ses_1");
    CHECK(session->interrupts == 1);
    CHECK(session->restarts == 1);
    CHECK(session->touched == 2);
    session->failure = Error(ErrorCode::kConflict, "dead");
    CHECK(api.ask("POST", "/v1/sessions/ses_1/interrupt").status == 409);
    CHECK(api.ask("POST", "/v1/sessions/ses_1/restart").status == 409);
}

}  // namespace
}  // namespace cellkeep::agent::test
