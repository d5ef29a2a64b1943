// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/session_page.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::api::test {
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

TEST_CASE(
    "a file that cannot be written has the status and type of its reason", "[agent][sessions]") {
    const auto [code, status, kind] = GENERATE(table<ErrorCode, int, std::string>({
        {ErrorCode::kLimitExceeded, 413, "workspace-full"},
        {ErrorCode::kNotFound, 409, "not-a-directory"},
        {ErrorCode::kInvalidArgument, 409, "not-a-file"},
    }));
    Api api;
    api.backend.failure = Error(code, "write(a): something").within_field("files/3");
    const auto refused = api.ask("POST", "/v1/sessions", "{}");
    CHECK(refused.status == status);
    CHECK(refused.json["type"] == "/problems/" + kind);
    CHECK(refused.json["errors"][0]["pointer"] == "/files/3");
    CHECK(refused.json["errors"][0]["message"] == "write(a): something");
    CHECK_FALSE(refused.headers.find("Retry-After") != nullptr);
    // A fault inside the field, not of its place, names the inner field.
    api.backend.failure =
        Error::in_field(ErrorCode::kInvalidArgument, "files/3/from", "there is no such file");
    const auto field = api.ask("POST", "/v1/sessions", "{}");
    CHECK(field.status == 422);
    CHECK(field.json["errors"][0]["pointer"] == "/files/3/from");
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

TEST_CASE(
    "listing is paged, oldest first, and a cursor outlives its session", "[agent][sessions]") {
    Api api;
    for (int i = 0; i < 5; ++i) {
        api.backend.add()->edit().created_at += std::chrono::seconds(i);
    }
    auto first = api.ask("GET", "/v1/sessions?limit=2");
    CHECK(first.json["sessions"][0]["id"] == "ses_1");
    const auto next = first.json["next"].get<std::string>();
    CHECK(first.headers.get("Link") == "</v1/sessions?after=" + next + "&limit=2>; rel=\"next\"");
    CHECK(api.ask("DELETE", "/v1/sessions/ses_2").status == 204);
    auto page = api.ask("GET", "/v1/sessions?limit=2&after=" + next).json;
    CHECK(page["sessions"][0]["id"] == "ses_3");
    const auto last =
        api.ask("GET", "/v1/sessions?limit=2&after=" + page["next"].get<std::string>());
    CHECK(last.json["sessions"].size() == 1);
    CHECK(last.json["next"].is_null());
    CHECK(last.headers.find("Link") == nullptr);
    CHECK(api.ask("GET", "/v1/sessions?limit=" + std::to_string(kPageSessionsMax)).status == 200);
}

TEST_CASE("listing is filtered by state and metadata", "[agent][sessions]") {
    Api api;
    session::SessionOptions options;
    options.metadata = {{"task", "T-1"}, {"n", 1}};
    api.backend.add(options);
    options.metadata = {{"task", "T-2"}, {"n", 1}};
    api.backend.add(options)->edit().state = session::KernelState::kBusy;
    const auto ids = [&api](const std::string& query) {
        std::string found;
        const auto listed = api.ask("GET", "/v1/sessions?" + query).json;
        for (const auto& one : listed["sessions"]) {
            found += one["id"].get<std::string>() + " ";
        }
        return found;
    };
    CHECK(ids("state=idle") == "ses_1 ");
    CHECK(ids("state=busy") == "ses_2 ");
    CHECK(ids("state=dead").empty());
    CHECK(ids("metadata.task=T-2") == "ses_2 ");
    CHECK(ids("metadata.n=1") == "ses_1 ses_2 ");
    CHECK(ids("metadata.n=1&metadata.task=T-1") == "ses_1 ");
    CHECK(ids("metadata.gone=1").empty());
    // A page contains only matches.
    const auto page = api.ask("GET", "/v1/sessions?limit=1&metadata.task=T-2").json;
    CHECK(page["next"].is_null());
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
          "after=",
          "after=-ses_1",
          "after=1-",
          "after=99999999999999999999-ses_1",
          "state=",
          "state=sleeping",
          "state=IDLE"}) {
        CAPTURE(query);
        CHECK(api.ask("GET", std::string("/v1/sessions?") + query).status == 400);
    }
}

TEST_CASE("an interrupt and a restart may be of one language", "[agent][sessions]") {
    Api api;
    const auto session = api.backend.add();
    session->edit().languages = {
        {"python", session::KernelState::kIdle, std::nullopt, 0},
        {"sql", std::nullopt, std::nullopt, 0}};
    CHECK(api.ask("POST", "/v1/sessions/ses_1/interrupt", R"({"language":"sql"})").status == 204);
    const auto restarted =
        api.ask("POST", "/v1/sessions/ses_1/restart", R"({"language":"python"})");
    CHECK(restarted.status == 200);
    CHECK(restarted.json["languages"][0]["name"] == "python");
    CHECK(restarted.json["languages"][0]["state"] == "idle");
    CHECK(restarted.json["languages"][1]["state"] == "unused");
    CHECK(session->named == std::vector<std::string>{"sql", "python"});
    for (const char* body : {"[]", R"({"language":"cobol"})", R"({"language":1})", R"({"x":1})"}) {
        CAPTURE(body);
        CHECK(api.ask("POST", "/v1/sessions/ses_1/interrupt", body).status == 422);
        CHECK(api.ask("POST", "/v1/sessions/ses_1/restart", body).status == 422);
    }
    CHECK(api.ask("POST", "/v1/sessions/ses_1/restart", "{").status == 400);
    CHECK(session->named.size() == 2);
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
}  // namespace cellkeep::api::test
