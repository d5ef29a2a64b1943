// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/routes.hpp"

#include "kernel-manager/api/openapi.hpp"
#include "kernel-manager/service/preparation.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::api::test {
namespace {

TEST_CASE(
    "the index says which languages are absent and what would install them", "[agent][routes]") {
    Api api;
    CHECK(api.ask("GET", "/").json["not_offered"] == nlohmann::json::array());
    api.backend.absent = {{"cpp", "it has not been built", "Build it."}};
    const nlohmann::json wanted = {
        {{"language", "cpp"}, {"reason", "it has not been built"}, {"hint", "Build it."}}};
    CHECK(api.ask("GET", "/").json["not_offered"] == wanted);
    const auto refused = api.ask("POST", "/v1/sessions", R"({"language":"cpp"})");
    CHECK(refused.status == 422);
    CHECK(
        refused.json["errors"][0]["message"] ==
        "is not offered; this server has: python, sql. cpp: it has not been built. Build it.");
    const auto other = api.ask("POST", "/v1/sessions", R"({"language":"cobol"})");
    CHECK(other.json["errors"][0]["message"] == "is not offered; this server has: python, sql");
}

TEST_CASE("the index names the version, the languages and the way on", "[agent][routes]") {
    Api api;
    const auto answer = api.ask("GET", "/");
    CHECK(answer.status == 200);
    CHECK(answer.json["version"] == "9.9");
    CHECK(answer.json["languages"].size() == 2);
    CHECK(answer.json["links"]["sessions"] == "/v1/sessions");
    CHECK(api.ask("GET", "/healthz").json == nlohmann::json{{"status", "ok"}, {"state", "ready"}});
    api.backend.warm = false;
    CHECK(
        api.ask("GET", "/healthz").json == nlohmann::json{{"status", "ok"}, {"state", "warming"}});
    api.backend.unprepared = true;
    CHECK(
        api.ask("GET", "/healthz").json ==
        nlohmann::json{{"status", "ok"}, {"state", "preparing"}});
}

TEST_CASE("a session that is asked for too early is refused with a reason", "[agent][routes]") {
    Api api;
    api.backend.failure = session::refuse_while_preparing();
    const auto answer = api.ask("POST", "/v1/sessions", "{}");
    CHECK(answer.status == 503);
    CHECK(answer.json["type"] == "/problems/preparing");
    CHECK_THAT(answer.json["detail"], Catch::Matchers::Contains("image that sessions run from"));
    CHECK(answer.json.value("errors", nlohmann::json()).empty());
    api.backend.failure = Error(ErrorCode::kUnavailable, "the host is full");
    CHECK(api.ask("POST", "/v1/sessions", "{}").json["type"] == "/problems/unavailable");
}

TEST_CASE("the OpenAPI document describes every route", "[agent][routes]") {
    Api api;
    const auto document = api.ask("GET", "/openapi.json").json;
    REQUIRE(document.is_object());
    CHECK(document["openapi"] == "3.1.0");
    for (const auto& [path, operations] : document["paths"].items()) {
        for (const auto& [method, operation] : operations.items()) {
            if (method == "parameters") {
                continue;
            }
            std::string target = path;
            for (const char* part : {"{id}", "{exe}", "{path}"}) {
                if (const auto at = target.find(part); at != std::string::npos) {
                    target.replace(at, std::string(part).size(), "x");
                }
            }
            std::string name = method;
            for (char& c : name) {
                c = static_cast<char>(c - 'a' + 'A');
            }
            CAPTURE(name, target);
            CHECK(api.ask(name, target).status != 405);
            CHECK(operation.contains("responses"));
        }
    }
}

TEST_CASE("a body is bounded by the table: uploads streamed, JSON whole", "[agent][routes]") {
    FakeSessionService backend;
    History history(nullptr);
    const http::TokenAuth auth("t");
    preview::Previews previews(auth, {});
    Routes routes(backend, history, previews, "1");
    http::Router router;
    routes.add_to(router);
    const auto upload = router.match("PUT", {"v1", "sessions", "x", "files", "a"});
    REQUIRE(upload.route != nullptr);
    CHECK(upload.route->body_mode == http::BodyMode::kStreamed);
    CHECK(upload.route->body_bytes_max == limits::kUploadBytesMax);
    const auto create = router.match("POST", {"v1", "sessions"});
    REQUIRE(create.route != nullptr);
    CHECK(create.route->body_mode == http::BodyMode::kWhole);
    CHECK(create.route->body_bytes_max == limits::kHttpBodyBytesMax);
}

TEST_CASE(
    "limits::kHttpIgnoredBodyBytesMax bounds a body that a route ignores", "[agent][routes]") {
    FakeSessionService backend;
    History history(nullptr);
    const http::TokenAuth auth("t");
    preview::Previews previews(auth, {});
    Routes routes(backend, history, previews, "1");
    http::Router router;
    routes.add_to(router);
    const std::vector<std::pair<const char*, std::vector<std::string>>> ignoring{
        {"GET", {"healthz"}},
        {"HEAD", {"healthz"}},
        {"GET", {}},
        {"GET", {"openapi.json"}},
        {"GET", {"v1", "sessions"}},
        {"GET", {"v1", "sessions", "x"}},
        {"DELETE", {"v1", "sessions", "x"}},
        {"GET", {"v1", "sessions", "x", "executions", "y"}},
        {"GET", {"v1", "sessions", "x", "files"}},
        {"GET", {"v1", "sessions", "x", "files", "a"}},
        {"DELETE", {"v1", "sessions", "x", "files", "a"}},
    };
    for (const auto& [method, segments] : ignoring) {
        CAPTURE(method, segments);
        const auto match = router.match(method, segments);
        REQUIRE(match.route != nullptr);
        CHECK(match.route->body_bytes_max == limits::kHttpIgnoredBodyBytesMax);
    }
}

TEST_CASE("methods that an address does not know are 405", "[agent][routes]") {
    Api api;
    for (const auto& [method, target] : {
             std::pair<const char*, const char*>{"PATCH", "/v1/sessions"},
             {"PUT", "/v1/sessions"},
             {"DELETE", "/v1/sessions"},
             {"GET", "/v1/sessions/x/restart"},
             {"GET", "/v1/executions"},
             {"POST", "/v1/sessions/x/files/a"},
             {"PUT", "/v1/sessions/x/executions"},
         }) {
        CAPTURE(method, target);
        const auto answer = api.ask(method, target);
        CHECK(answer.status == 405);
        CHECK_FALSE(answer.headers.get("Allow").empty());
    }
}

TEST_CASE("an unknown session is a 404 problem on every route", "[agent][routes]") {
    Api api;
    for (const auto& [method, target] : {
             std::pair<const char*, const char*>{"GET", "/v1/sessions/ses_0"},
             {"DELETE", "/v1/sessions/ses_0"},
             {"POST", "/v1/sessions/ses_0/interrupt"},
             {"POST", "/v1/sessions/ses_0/restart"},
             {"POST", "/v1/sessions/ses_0/executions"},
             {"GET", "/v1/sessions/ses_0/executions/exe_1"},
             {"GET", "/v1/sessions/ses_0/files"},
             {"GET", "/v1/sessions/ses_0/files/a"},
             {"PUT", "/v1/sessions/ses_0/files/a"},
             {"DELETE", "/v1/sessions/ses_0/files/a"},
         }) {
        CAPTURE(method, target);
        const auto answer = api.ask(method, target, "{}");
        CHECK(answer.status == 404);
        CHECK(answer.json["type"] == "/problems/unknown-session");
        CHECK(answer.json["instance"] == target);
    }
}

TEST_CASE("a session of another principal does not exist for an agent", "[agent][routes]") {
    Api api;
    session::SessionOptions options;
    options.owner = "alice";
    const auto session = api.backend.add(options);
    api.principal = {"bob", http::Role::kAgent};
    CHECK(api.ask("GET", "/v1/sessions/" + session->id()).status == 404);
    CHECK(api.ask("DELETE", "/v1/sessions/" + session->id()).status == 404);
    CHECK(api.ask("GET", "/v1/sessions").json["sessions"].empty());
    api.principal = {"alice", http::Role::kAgent};
    CHECK(api.ask("GET", "/v1/sessions/" + session->id()).status == 200);
    CHECK(api.ask("GET", "/v1/sessions").json["sessions"].size() == 1);
}

}  // namespace
}  // namespace cellkeep::api::test
