// SPDX-License-Identifier: Apache-2.0
//
// What each role may do below /api, and what one principal learns of another's.
#include "kernel-manager/jupyter/rest/rest_api.hpp"
#include "tests/unit/jupyter/rest_fixture.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string>

namespace cellkeep::jupyter::test {
namespace {

TEST_CASE("every route of the REST API but a GET changes something", "[rest][roles]") {
    boost::asio::io_context io;
    FakeSessionService backend;
    RestApi api(io, backend, {});
    http::Application application(http::TokenAuth("t"), http::HostGuard());
    api.add_to(application);
    REQUIRE_FALSE(application.router().routes().empty());
    const std::set<std::string> without_token = {
        "/api", "/api/", "/login", "/logout", "/kernelspecs/{name}/{file}"};
    for (const http::Route* route : application.router().routes()) {
        CAPTURE(route->method, route->pattern);
        const bool open = without_token.contains(route->pattern);
        CHECK((route->access == http::Access::kOpen) == open);
        // What a terminal's WebSocket brings is typed.
        const bool types = route->pattern.starts_with("/terminals/websocket/");
        CHECK((route->access == http::Access::kChange) == (route->method != "GET" || types));
    }
}

TEST_CASE("an observer is refused in the form that Jupyter clients read", "[rest][roles]") {
    RestFixture rest;
    (void)rest.add_kernel(kSomeUuid, "alice");
    const std::string kernel = std::string("/api/kernels/") + kSomeUuid;
    const auto as_eve = [&rest](const char* method, const std::string& target) {
        return rest.ask(method, target, "{}", {{"Authorization", "token " + kEveToken}});
    };
    for (const auto& [method, target] :
         {std::pair<const char*, std::string>{"POST", "/api/kernels"},
          {"DELETE", kernel},
          {"POST", kernel + "/interrupt"},
          {"POST", kernel + "/restart"},
          {"POST", "/api/sessions"},
          {"PATCH", "/api/sessions/x"},
          {"DELETE", "/api/sessions/x"},
          {"POST", "/api/terminals"}}) {
        CAPTURE(method, target);
        const auto answer = as_eve(method, target);
        CHECK(answer.status == 403);
        CHECK(answer.headers.get("Content-Type") == "application/json");
        CHECK(answer.json["reason"] == "This role may only read");
        CHECK(answer.json["message"].get<std::string>().find("token") != std::string::npos);
    }
    CHECK(as_eve("GET", kernel).status == 200);
    CHECK(as_eve("GET", "/api/kernels").json.size() == 1);
    CHECK(as_eve("GET", "/api/status").json["kernels"] == 1);
    CHECK(rest.backend.sessions.size() == 1);
}

TEST_CASE("an agent's last activity is hidden from other agents", "[rest][roles]") {
    RestFixture rest;
    const auto activity = [&rest](const char* name, http::Role role) {
        rest.principal = {name, role};
        return rest.ask("GET", "/api/status").json["last_activity"];
    };
    const auto before = activity("bob", http::Role::kAgent);
    rest.principal = {"alice", http::Role::kAgent};
    while (activity("alice", http::Role::kAgent) == before) {
        (void)rest.ask("GET", "/api/kernels");
    }
    CHECK(activity("bob", http::Role::kAgent) == before);
    CHECK(activity("admin", http::Role::kAdmin) == activity("alice", http::Role::kAgent));
    CHECK(activity("eve", http::Role::kObserver) == activity("alice", http::Role::kAgent));
}

TEST_CASE(
    "a kernel id that now belongs to another principal shows nothing of it", "[rest][roles]") {
    RestFixture rest;
    rest.principal = {"alice", http::Role::kAgent};
    (void)rest.add_kernel(kSomeUuid, "alice");
    const auto made = rest.ask(
        "POST",
        "/api/sessions",
        std::string(R"({"path":"a","type":"console","kernel":{"id":")") + kSomeUuid + "\"}}");
    REQUIRE(made.status == 201);
    const std::string document = "/api/sessions/" + made.json["id"].get<std::string>();
    REQUIRE(rest.backend.remove(kSomeUuid).has_value());
    (void)rest.add_kernel(kSomeUuid, "bob");
    CHECK(rest.ask("GET", document).status == 404);
    CHECK(rest.ask("GET", "/api/sessions").json.empty());
    CHECK(rest.ask("DELETE", document).status == 410);
    CHECK(rest.backend.sessions.size() == 1);
}

}  // namespace
}  // namespace cellkeep::jupyter::test
