// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/history.hpp"

#include "tests/support/temporary_directory.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::api::test {
namespace {

struct Remembering {
    cellkeep::test::TemporaryDirectory directory;
    std::unique_ptr<store::Store> store =
        store::Store::open(directory.path() + "/h.db", [](const std::string&) {}).value();
    Api api{store.get()};

    std::shared_ptr<FakeSession> add() {
        auto session = api.backend.add();
        REQUIRE(api.history.on_session_created(session).has_value());
        return session;
    }
    void end() {
        REQUIRE(api.backend.remove("ses_1").has_value());
        api.history.on_session_closed("ses_1");
    }
};

TEST_CASE("a session that ended is gone, one that never was is unknown", "[agent][history]") {
    Remembering fixture;
    fixture.add();
    CHECK(fixture.api.ask("GET", "/v1/sessions/ses_1").status == 200);
    fixture.end();
    const auto gone = fixture.api.ask("GET", "/v1/sessions/ses_1");
    CHECK(gone.status == 410);
    CHECK(gone.json["type"] == "/problems/session-ended");
    CHECK(gone.json["ended_at"].is_string());
    CHECK(fixture.api.ask("GET", "/v1/sessions/ses_2").status == 404);
    fixture.api.principal = {"somebody else", http::Role::kAgent};
    CHECK(fixture.api.ask("GET", "/v1/sessions/ses_1").status == 404);
}

TEST_CASE("every request for a session that ended is answered as gone", "[agent][history]") {
    Remembering fixture;
    fixture.add();
    fixture.end();
    const auto [method, target, body] = GENERATE(table<std::string, std::string, std::string>({
        {"PATCH", "", R"({"metadata":{}})"},
        {"DELETE", "", ""},
        {"POST", "/interrupt", ""},
        {"POST", "/restart", ""},
        {"POST", "/executions", R"({"code":""})"},
        {"GET", "/executions/exe_1", ""},
        {"GET", "/executions/exe_1/events", ""},
        {"POST", "/executions/exe_1/interrupt", ""},
        {"GET", "/files", ""},
        {"GET", "/files/a", ""},
        {"PUT", "/files/a", ""},
        {"DELETE", "/files/a", ""},
        {"GET", "/files.tar.zst", ""},
    }));
    CAPTURE(method, target);
    CHECK(fixture.api.ask(method, "/v1/sessions/ses_1" + target, body).status == 410);
    CHECK(fixture.api.ask(method, "/v1/sessions/ses_2" + target, body).status == 404);
}

TEST_CASE("a row belongs to the owner of its session", "[agent][history]") {
    Remembering fixture;
    session::SessionOptions options;
    options.owner = "agent";
    const auto session = fixture.api.backend.add(options);
    REQUIRE(fixture.api.history.on_session_created(session).has_value());
    CHECK(fixture.api.ask("POST", kExecutions, R"({"code":"1"})").status == 200);  // by "admin"
    fixture.end();
    fixture.api.principal = {"agent", http::Role::kAgent};
    CHECK(fixture.api.ask("GET", std::string(kExecutions) + "/exe_1").status == 200);
}

TEST_CASE("a server whose store does not work says so", "[agent][history]") {
    CHECK(Api().ask("GET", "/healthz").json["status"] == "ok");
    Api api(nullptr, "no store");
    const auto health = api.ask("GET", "/healthz");
    CHECK(health.status == 200);
    CHECK(health.json["status"] == "degraded");
    CHECK(health.json["store"] == "no store");
}

TEST_CASE("executions stay readable when their session is gone", "[agent][history]") {
    Remembering fixture;
    fixture.add();
    CHECK(fixture.api.ask("POST", kExecutions, R"({"code":"1","reasoning":"why"})").status == 200);
    CHECK(fixture.api.ask("POST", kExecutions, R"({"code":"2"})").status == 200);
    fixture.end();
    const std::string path = kExecutions;
    const auto stored = fixture.api.ask("GET", path + "/exe_1");
    CHECK(stored.status == 200);
    CHECK(stored.json["stored"] == true);
    CHECK(stored.json["status"] == "ok");
    CHECK(stored.json["reasoning"] == "why");
    CHECK_FALSE(stored.json.contains("stdout"));
    const auto page = fixture.api.ask("GET", path + "?limit=1");
    CHECK(page.json["executions"][0]["id"] == "exe_1");
    CHECK(page.json["next"] == "exe_1");
    CHECK(fixture.api.ask("GET", path + "?after=exe_1").json["executions"][0]["id"] == "exe_2");
    const auto lost = fixture.api.ask("GET", path + "?after=exe_9");
    CHECK(lost.status == 400);
    CHECK(lost.json["type"] == "/problems/unknown-cursor");
    CHECK(fixture.api.ask("GET", path + "/exe_9").status == 410);
    CHECK(fixture.api.ask("GET", "/v1/sessions/ses_9/executions/exe_1").status == 404);
    fixture.api.principal = {"somebody else", http::Role::kAgent};
    CHECK(fixture.api.ask("GET", path + "/exe_1").status == 404);
    CHECK(fixture.api.ask("GET", path).status == 404);
}

TEST_CASE("a text is stored up to its bound and without secrets", "[agent][history]") {
    // limits::kStoredTextBytesMax; a request's own bound is the same.
    static_assert(limits::kStoredTextBytesMax == limits::kMetadataBytesMax);
    Remembering fixture;
    fixture.add();
    const std::string most(limits::kStoredTextBytesMax, 'r');
    const auto post = [&](const std::string& reasoning) {
        const nlohmann::json body = {{"code", "1"}, {"reasoning", reasoning}};
        return fixture.api.ask("POST", kExecutions, body.dump()).status;
    };
    CHECK(post(most) == 200);
    CHECK(post(most + "r") == 422);
    CHECK(post("with ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2") == 200);
    fixture.end();
    const std::string path = kExecutions;
    CHECK(fixture.api.ask("GET", path + "/exe_1").json["reasoning"] == most);
    const std::string clean = fixture.api.ask("GET", path + "/exe_2").json["reasoning"];
    CHECK(clean.find("ghp_") == std::string::npos);
}

}  // namespace
}  // namespace cellkeep::api::test
