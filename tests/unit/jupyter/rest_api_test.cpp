// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/jupyter/rest_fixture.hpp"

#include <catch2/catch.hpp>

#include <regex>

namespace cellkeep::jupyter::test {
namespace {

TEST_CASE("the version needs no token, everything else does", "[rest][api]") {
    RestFixture rest;
    const std::vector<std::pair<std::string, std::string>> wrong = {{"Authorization", "token no"}};
    const auto version = rest.ask("GET", "/api", "", wrong);
    CHECK(version.status == 200);
    CHECK(version.json.size() == 1);
    CHECK(version.json["version"].is_string());
    CHECK(rest.ask("GET", "/api/", "", wrong).json == version.json);
    for (const char* target :
         {"/api/status",
          "/api/me",
          "/api/kernels",
          "/api/kernelspecs",
          "/api/kernelspecs/python3",
          "/api/sessions",
          "/api/terminals",
          "/api/nosuch"}) {
        CAPTURE(target);
        const auto answer = rest.ask("GET", target, "", wrong);
        CHECK(answer.status == 401);
        CHECK(answer.json["message"].is_string());
        CHECK(answer.json["reason"].is_string());
    }
    CHECK(rest.ask("POST", "/api/kernels", "", wrong).status == 401);
    CHECK(rest.backend.asked.empty());
}

TEST_CASE("the status counts kernels and connections", "[rest][api]") {
    RestFixture rest;
    rest.add_kernel()->edit().connections = 2;
    const auto kernel = rest.add_kernel(kOtherUuid);
    kernel->edit().connections = 1;
    kernel->edit().last_activity = std::chrono::system_clock::now() + std::chrono::hours(1);
    const auto status = rest.ask("GET", "/api/status").json;
    CHECK(status["kernels"] == 2);
    CHECK(status["connections"] == 3);
    CHECK(status["last_activity"].get<std::string>() > status["started"].get<std::string>());
    const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)");
    CHECK(std::regex_match(status["started"].get<std::string>(), time));
    CHECK(std::regex_match(status["last_activity"].get<std::string>(), time));
}

TEST_CASE("a request that says so does not count as activity", "[rest][api]") {
    RestFixture rest;
    const auto activity = [&rest] { return rest.ask("GET", "/api/status").json["last_activity"]; };
    const auto before = activity();
    (void)rest.ask("GET", "/api/kernels?no_track_activity=1");
    (void)rest.ask("GET", "/api/status");
    (void)rest.ask("GET", "/api");
    CHECK(activity() == before);
    (void)rest.ask("GET", "/api/kernels");
    CHECK(activity() != before);
}

TEST_CASE("the identity is the principal's, with what it may do", "[rest][api]") {
    RestFixture rest;
    auto me = rest.ask("GET", "/api/me");
    CHECK(me.status == 200);
    for (const char* field : {"username", "name", "display_name"}) {
        CHECK(me.json["identity"][field] == "admin");
    }
    CHECK(me.json["identity"]["initials"] == "a");
    CHECK(me.json["identity"]["color"].is_null());
    CHECK(me.json["permissions"] == nlohmann::json::object());
    CHECK(me.json["updatable_fields"] == nlohmann::json::array());
    CHECK(rest.ask("PATCH", "/api/me", "{}").status == 405);
    const std::string question =
        "/api/me?permissions=%7B%22kernels%22:%5B%22read%22,%22write%22%5D%7D";
    CHECK(rest.ask("GET", question).json["permissions"]["kernels"].size() == 2);
    rest.principal = {"eve", http::Role::kObserver};
    me = rest.ask("GET", question);
    CHECK(me.json["permissions"]["kernels"] == nlohmann::json({"read"}));
    CHECK(me.json["identity"]["name"] == "eve");
}

TEST_CASE("a question about permissions that is not one is refused", "[rest][api]") {
    RestFixture rest;
    for (const char* question :
         {"x", "[]", "1", "null", "%7B", "%7B%22a%22:1%7D", "%7B%22a%22:%5B1%5D%7D", "\"\""}) {
        CAPTURE(question);
        const auto answer = rest.ask("GET", std::string("/api/me?permissions=") + question);
        CHECK(answer.status == 400);
        CHECK(answer.json["message"].is_string());
    }
}

TEST_CASE("the log-in pages say that there is no log-in", "[rest][api]") {
    RestFixture rest;
    const std::vector<std::pair<std::string, std::string>> wrong = {{"Authorization", "token no"}};
    for (const char* target : {"/login", "/logout", "/login?next=http%3A%2F%2Fevil.example"}) {
        CAPTURE(target);
        const auto answer = rest.ask("GET", target, "", wrong);
        CHECK(answer.status == 200);
        CHECK(answer.headers.get("Content-Type") == "text/plain; charset=utf-8");
        CHECK(answer.headers.find("Location") == nullptr);
        CHECK(answer.headers.find("Set-Cookie") == nullptr);
        CHECK(answer.text.find("Bearer TOKEN") != std::string::npos);
        CHECK(answer.text.find("evil") == std::string::npos);
    }
    CHECK(rest.ask("POST", "/login", "password=x", wrong).status == 401);
    CHECK(rest.ask("POST", "/login", "password=x").status == 405);
}

TEST_CASE("an address that Jupyter has and Cellkeep does not is a JSON error", "[rest][api]") {
    RestFixture rest;
    for (const char* target :
         {"/api/contents/a.ipynb",
          "/api/settings",
          "/api/config/notebook",
          "/api/kernels/",
          "/api/nosuch",
          "/api/kernels/a/b/c"}) {
        CAPTURE(target);
        const auto answer = rest.ask("GET", target);
        CHECK(answer.status == 404);
        CHECK(answer.headers.get("Content-Type") == "application/json");
        CHECK(answer.json.size() == 2);
        CHECK(answer.json["message"].is_string());
        CHECK(answer.json["reason"].is_string());
    }
    const auto wrong_method = rest.ask("PUT", "/api/kernels", "{}");
    CHECK(wrong_method.status == 405);
    CHECK(wrong_method.json["message"].is_string());
    CHECK(rest.ask("GET", "/v2").headers.get("Content-Type") == "application/problem+json");
}

}  // namespace
}  // namespace cellkeep::jupyter::test
