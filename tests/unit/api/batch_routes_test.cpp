// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api::test {
namespace {

using nlohmann::json;

std::vector<json> lines_of(const std::string& text) {
    std::vector<json> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(json::parse(line));
    }
    return lines;
}

constexpr const char* kBatch = "/v1/batch";
constexpr const char* kTwo = R"({"code":"1","items":[{"env":{"A":"1"}},{"stdin":"x"}]})";

TEST_CASE("a batch is answered line by line, and read again later", "[agent][batch]") {
    Api api;
    api.principal = {"alice", http::Role::kAgent};
    const auto answer = api.ask("POST", kBatch, kTwo);
    REQUIRE(answer.status == 200);
    CHECK(answer.headers.get("Content-Type") == "application/x-ndjson");
    const auto lines = lines_of(answer.text);
    REQUIRE(lines.size() == 3);
    const std::string place(answer.headers.get("Content-Location"));
    CHECK(place == "/v1/batch/" + lines[2]["summary"]["id"].get<std::string>());
    CHECK(api.backend.asked.at(0).env.at("A") == "1");
    CHECK(api.backend.removed == 2);
    CHECK(api.ask("GET", place).json == lines[2]["summary"]);
    CHECK(lines_of(api.ask("GET", place + "/lines").text) == lines);
    CHECK(lines_of(api.ask("GET", place + "/lines?after=2").text).size() == 1);
    CHECK(api.ask("GET", place + "/lines?after=3").text.empty());
    for (const char* wrong : {"-1", "x", "", "1.5", "99999"}) {
        CHECK(api.ask("GET", place + "/lines?after=" + wrong).status == 400);
    }
    api.principal = {"bob", http::Role::kAgent};
    for (const char* method : {"GET", "DELETE"}) {
        CHECK(api.ask(method, place).status == 404);
    }
    CHECK(api.ask("GET", place + "/lines").status == 404);
    const std::vector<std::pair<std::string, std::string>> eve{
        {"Authorization", "Bearer " + kEveToken}};
    CHECK(api.ask("GET", place, "", eve).status == 200);
    CHECK(api.ask("DELETE", place, "", eve).status == 403);
    CHECK(api.ask("POST", kBatch, kTwo, eve).status == 403);
    api.principal = {"alice", http::Role::kAgent};
    CHECK(api.ask("DELETE", place).status == 204);
    const auto gone = api.ask("GET", place);
    CHECK(gone.status == 404);
    CHECK(gone.json["type"] == "/problems/unknown-batch");
}

TEST_CASE("a batch goes on without its client, unless it was asked not to", "[agent][batch]") {
    Api api;
    api.backend.ends_what_runs = true;
    std::vector<std::shared_ptr<FakeSession>> made;
    api.backend.on_made = [&](const std::shared_ptr<FakeSession>& session) {
        session->finishes = false;
        made.push_back(session);
    };
    api.client_goes = true;
    api.meanwhile = [&] {
        for (const auto& session : made) {
            session->executions.at(0)->finish(session->answer_of(*session->executions.at(0)));
        }
    };
    const auto left = api.ask("POST", kBatch, kTwo);
    const std::string place(left.headers.get("Content-Location"));
    CHECK(api.ask("GET", place).json["counts"] == json{{"ok", 2}});
    api.client_goes = true;
    const auto ended =
        api.ask("POST", kBatch, R"({"code":"1","items":[{},{}],"on_disconnect":"interrupt"})");
    const std::string other(ended.headers.get("Content-Location"));
    const json state = api.ask("GET", other).json;
    CHECK(state["stopped_by"] == "disconnected");
    CHECK(state["counts"] == json{{"stopped", 2}});
}

TEST_CASE("a batch can be read later, and has the form that it has", "[agent][batch]") {
    Api api;
    const auto later = api.ask("POST", kBatch, kTwo, {{"Prefer", "respond-async"}});
    REQUIRE(later.status == 202);
    CHECK(later.json["items"] == 2);
    CHECK(later.headers.get("Preference-Applied") == "respond-async");
    const std::string place(later.headers.get("Location"));
    CHECK(api.ask("GET", place).json["state"] == "finished");
    CHECK(api.ask("POST", kBatch, kTwo, {{"Accept", "text/event-stream"}}).status == 406);
    CHECK(api.ask("GET", place + "/lines", "", {{"Accept", "text/html"}}).status == 406);
    CHECK(api.ask("POST", kBatch, "").status == 400);
    CHECK(api.ask("POST", kBatch, "{}").status == 422);
    CHECK(api.ask("POST", kBatch, kTwo, {{"Content-Type", "text/plain"}}).status == 415);
}

TEST_CASE("a batch from a session needs one that can be branched", "[agent][batch]") {
    Api api;
    session::SessionOptions options;
    options.owner = "alice";
    const auto session = api.backend.add(options);
    const auto ask = [&](const json& from) {
        return api.ask("POST", kBatch, json{{"from", from}, {"items", {{{"code", "1"}}}}}.dump());
    };
    CHECK(ask({{"session", "ses_1"}}).status == 409);
    session->edit().branches = true;
    const auto unknown = ask({{"session", "ses_1"}, {"checkpoint", "ckp_1"}});
    CHECK(unknown.status == 404);
    CHECK(unknown.json["type"] == "/problems/unknown-checkpoint");
    // One that cannot be copied.
    CHECK(ask({{"session", "ses_1"}}).json["type"] == "/problems/not-forkable");
    CHECK(ask({{"session", "ses_9"}}).json["type"] == "/problems/unknown-session");
    api.principal = {"bob", http::Role::kAgent};
    CHECK(ask({{"session", "ses_1"}}).json["type"] == "/problems/unknown-session");
}

}  // namespace
}  // namespace cellkeep::api::test
