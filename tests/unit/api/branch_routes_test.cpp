// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/branch_body.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <string>
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
    CHECK(plain.on_threads == checkpoint::OnThreads::kRefuse);
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
        {{{"on_threads", "carry"}}, "/on_threads"},
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

}  // namespace
}  // namespace cellkeep::api::test
