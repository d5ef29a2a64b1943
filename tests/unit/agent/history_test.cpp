// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/agent/history.hpp"

#include "tests/support/temporary_directory.hpp"
#include "tests/unit/agent/agent_api.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::agent::test {
namespace {

constexpr const char* kExecutions = "/v1/sessions/ses_1/executions";

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
    CHECK(fixture.api.ask("GET", path + "/exe_9").status == 404);
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
}  // namespace cellkeep::agent::test
