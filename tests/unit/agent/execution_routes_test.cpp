// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/agent/agent_api.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::agent::test {
namespace {

constexpr const char* kExecutions = "/v1/sessions/ses_1/executions";

TEST_CASE("an execution is run and answered whole", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    const auto answer =
        api.ask("POST", kExecutions, R"({"code":"1","stdin":"x","timeout_ms":5,"outputs":true})");
    CHECK(answer.status == 200);
    CHECK(answer.json["status"] == "ok");
    CHECK(answer.json["stdout"] == "out");
    CHECK(answer.json["outputs"].size() == 1);
    REQUIRE(session->requests.size() == 1);
    CHECK(session->requests[0].code == "1");
    CHECK_FALSE(api.ask("POST", kExecutions, R"({"code":"1"})").json.contains("outputs"));
}

TEST_CASE("a bad execution runs nothing", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    CHECK(api.ask("POST", kExecutions, "").status == 400);
    CHECK(api.ask("POST", kExecutions, "{").status == 400);
    CHECK(api.ask("POST", kExecutions, "{}").status == 422);
    CHECK(api.ask("POST", kExecutions, R"({"code":1})").json["errors"][0]["pointer"] == "/code");
    CHECK(api.ask("POST", kExecutions, R"({"code":"","language":"sql"})").status == 422);
    CHECK(
        api.ask("POST", kExecutions, R"({"code":""})", {{"Content-Type", "text/plain"}}).status ==
        415);
    CHECK(session->requests.empty());
}

TEST_CASE("streams and asynchronous answers are refused, not ignored", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    const char* body = R"({"code":""})";
    CHECK(api.ask("POST", kExecutions, body, {{"Accept", "text/event-stream"}}).status == 406);
    CHECK(api.ask("POST", kExecutions, body, {{"Accept", "application/x-ndjson"}}).status == 406);
    CHECK(api.ask("POST", "/v1/executions", body, {{"Accept", "text/html"}}).status == 406);
    CHECK(api.ask("POST", kExecutions, body, {{"Prefer", "respond-async"}}).status == 501);
    CHECK(session->requests.empty());
    CHECK(api.ask("POST", kExecutions, body, {{"Accept", "*/*"}}).status == 200);
    CHECK(
        api.ask("POST", kExecutions, body, {{"Accept", "text/html, application/json"}}).status ==
        200);
}

TEST_CASE("a session that cannot run says why", "[agent][executions]") {
    Api api;
    const auto session = api.backend.add();
    session->failure = Error(ErrorCode::kConflict, "the kernel is dead");
    CHECK(api.ask("POST", kExecutions, R"({"code":""})").status == 409);
    session->failure = Error(ErrorCode::kLimitExceeded, "queue");
    CHECK(api.ask("POST", kExecutions, R"({"code":""})").status == 429);
}

TEST_CASE("a finished execution is found by its id", "[agent][executions]") {
    Api api;
    api.backend.add();
    CHECK(api.ask("GET", "/v1/sessions/ses_1/executions/exe_1").json["id"] == "exe_1");
    CHECK(api.ask("GET", "/v1/sessions/ses_1/executions/exe_1?outputs=true")
              .json.contains("outputs"));
    const auto answer = api.ask("GET", "/v1/sessions/ses_1/executions/exe_2");
    CHECK(answer.status == 404);
    CHECK(answer.json["type"] == "/problems/unknown-execution");
}

TEST_CASE("a one-shot execution leaves no session, whatever happens", "[agent][executions]") {
    Api api;
    CHECK(api.ask("POST", "/v1/executions", R"({"code":"1"})").json["session_id"] == "ses_1");
    CHECK(api.backend.removed == 1);
    api.backend.session_failure = Error(ErrorCode::kConflict, "died");
    CHECK(api.ask("POST", "/v1/executions", R"({"code":"1"})").status == 409);
    CHECK(api.backend.removed == 2);
    CHECK(api.backend.sessions.empty());
    CHECK(api.ask("POST", "/v1/executions", R"({"code":1})").status == 422);
    CHECK(api.backend.removed == 2);
}

}  // namespace
}  // namespace cellkeep::agent::test
