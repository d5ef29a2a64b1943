// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/branch_body.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api::test {
namespace {

using nlohmann::json;

constexpr const char* kBranches = "/v1/sessions/ses_1/branches";

TEST_CASE("an order for branches says from where, how many and what they are called", "[agent]") {
    FieldErrors errors;
    const BranchesOrder plain = parse_branches_order(json::object(), errors);
    CHECK_FALSE(plain.from.has_value());
    CHECK(plain.count == 1);
    CHECK(plain.labels.empty());
    CHECK(plain.reseed);
    CHECK(plain.on_threads == checkpoint::OnThreads::kCarry);
    const std::string longest(limits::kCheckpointLabelBytesMax, 'x');
    const BranchesOrder most = parse_branches_order(
        {{"from", "ckp_1"},
         {"count", kBranchesAtOnceMax},
         {"labels", {"a", longest}},
         {"reseed", false}},
        errors);
    CHECK(most.from == "ckp_1");
    CHECK(most.count == kBranchesAtOnceMax);
    CHECK(most.labels == std::vector<std::string>{"a", longest});
    CHECK_FALSE(most.reseed);
    CHECK(
        parse_branches_order({{"on_threads", "drop"}}, errors).on_threads ==
        checkpoint::OnThreads::kDrop);
    CHECK(errors.empty());
}

TEST_CASE("wrong orders for branches are refused field by field", "[agent]") {
    const auto [body, pointer] = GENERATE(table<json, std::string>({
        {{{"count", 0}}, "/count"},
        {{{"count", kBranchesAtOnceMax + 1}}, "/count"},
        {{{"count", -1}}, "/count"},
        {{{"count", 1.5}}, "/count"},
        {{{"count", "1"}}, "/count"},
        {{{"from", 1}}, "/from"},
        {{{"from", std::string(65, 'x')}}, "/from"},
        {{{"labels", "a"}}, "/labels"},
        {{{"labels", {"a", "b"}}}, "/labels"},
        {{{"count", 2U}, {"labels", {"a", ""}}}, "/labels/1"},
        {{{"labels", json::array({1})}}, "/labels/0"},
        {{{"labels", json::array({std::string(limits::kCheckpointLabelBytesMax + 1, 'x')})}},
         "/labels/0"},
        {{{"reseed", 1}}, "/reseed"},
        {{{"on_threads", "keep"}}, "/on_threads"},
        {{{"from", "ckp_1"}, {"on_threads", "drop"}}, "/on_threads"},
        {{{"limits", json::object()}}, "/limits"},
        {json::array(), ""},
    }));
    INFO(body.dump());
    FieldErrors errors;
    (void)parse_branches_order(body, errors);
    REQUIRE_FALSE(errors.empty());
    CHECK(errors.front().pointer == pointer);
}

TEST_CASE("a session that cannot be copied or has no such checkpoint has no branches", "[agent]") {
    Api api;
    REQUIRE(api.ask("POST", "/v1/sessions", "{}").status == 201);
    const auto refused = api.ask("POST", kBranches, "");
    CHECK(refused.status == 409);
    CHECK(refused.json["type"] == "/problems/not-forkable");
    const auto unknown = api.ask("POST", kBranches, R"({"from":"ckp_1"})");
    CHECK(unknown.status == 404);
    CHECK(unknown.json["type"] == "/problems/unknown-checkpoint");
    CHECK(api.ask("POST", kBranches, R"({"count":0})").status == 422);
    CHECK(api.ask("POST", "/v1/sessions/ses_9/branches", "{}").status == 404);
}

/// A session of alice's with a checkpoint.
std::shared_ptr<FakeSession> prepared(Api& api) {
    session::SessionOptions options;
    options.owner = "alice";
    const auto session = api.backend.add(options);
    session->edit().branches = true;
    checkpoint::Checkpoint made;
    made.id = "ckp_1";
    session->kept.checkpoints.push_back(made);
    return session;
}

TEST_CASE("a new session goes on from a state of another one", "[agent]") {
    Api api;
    const auto parent = prepared(api);
    api.principal = {"alice", http::Role::kAgent};
    const auto ask = [&](const json& body) { return api.ask("POST", "/v1/sessions", body.dump()); };
    const json from = {{"session", "ses_1"}, {"checkpoint", "ckp_1"}, {"reseed", false}};
    const auto made = ask({{"from", from}, {"label", "try"}});
    REQUIRE(made.status == 201);
    CHECK(made.headers.get("Location") == "/v1/sessions/ses_2");
    CHECK(made.json["branch_of"]["label"] == "try");
    CHECK(made.json["owner"] == "alice");
    REQUIRE(api.backend.branched.size() == 1);
    CHECK(api.backend.branched[0].checkpoint == "ckp_1");
    CHECK_FALSE(api.backend.branched[0].reseed);
    // It has all else from there.
    for (const auto& [body, pointer] : std::vector<std::pair<json, std::string>>{
             {{{"from", "ses_1"}}, "/from"},
             {{{"from", json::object()}}, "/from/session"},
             {{{"from", {{"session", 1}}}}, "/from/session"},
             {{{"from", {{"session", "ses_1"}, {"checkpoint", 1}}}}, "/from/checkpoint"},
             {{{"from", {{"session", "ses_1"}, {"on_threads", "keep"}}}}, "/from/on_threads"},
             {{{"from", {{"session", "ses_1"}, {"count", 2}}}}, "/from/count"},
             {{{"from", from}, {"label", ""}}, "/label"},
             {{{"from", from}, {"limits", json::object()}}, "/limits"},
             {{{"from", from}, {"language", "sql"}}, "/language"},
             {{{"label", "try"}}, "/label"}}) {
        INFO(body.dump());
        const auto refused = ask(body);
        CHECK(refused.status == 422);
        CHECK(refused.json["errors"][0]["pointer"] == pointer);
    }
    CHECK(ask({{"from", {{"session", "ses_1"}, {"checkpoint", "ckp_2"}}}}).status == 404);
    CHECK(ask({{"from", {{"session", "ses_9"}}}}).json["type"] == "/problems/unknown-session");
    CHECK(ask({{"from", {{"session", "ses_1"}}}}).json["type"] == "/problems/not-forkable");
    api.backend.failure = Error(ErrorCode::kLimitExceeded, "too many sessions");
    CHECK(ask({{"from", from}}).status == 429);
    api.backend.failure.reset();
    parent->edit().branches = false;
    CHECK(ask({{"from", from}}).status == 409);
    parent->edit().branches = true;
    api.principal = {"bob", http::Role::kAgent};
    CHECK(ask({{"from", from}}).json["type"] == "/problems/unknown-session");
    CHECK(api.backend.branched.size() == 2);
}

TEST_CASE("a batch goes on from a state of a session", "[agent][batch]") {
    Api api;
    const auto parent = prepared(api);
    api.principal = {"alice", http::Role::kAgent};
    const json body = {
        {"from", {{"session", "ses_1"}, {"checkpoint", "ckp_1"}}},
        {"items", {{{"code", "1"}, {"label", "a"}}, {{"code", "2"}}}},
        {"keep", "all"}};
    const auto answer = api.ask("POST", "/v1/batch", body.dump());
    REQUIRE(answer.status == 200);
    REQUIRE(api.backend.branched.size() == 2);
    CHECK(api.backend.branched[0].label == "a");
    CHECK(api.backend.branched[1].checkpoint == "ckp_1");
    const json summary =
        json::parse(answer.text.substr(answer.text.find("{\"summary\"")))["summary"];
    CHECK(summary["kept"] == json::array({"ses_2", "ses_3"}));
    CHECK(summary["from"] == json{{"session", "ses_1"}, {"checkpoint", "ckp_1"}});
    CHECK(parent->requests.empty());
}

}  // namespace
}  // namespace cellkeep::api::test
