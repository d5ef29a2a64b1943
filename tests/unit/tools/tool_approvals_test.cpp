// SPDX-License-Identifier: Apache-2.0
#include "protocol/tool_request.hpp"
#include "tests/unit/tools/brokered.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace cellkeep::tools {
namespace {

using nlohmann::json;

TEST_CASE("a call that a person is asked about waits for the word", "[tools]") {
    Brokered test;
    auto waits = test.begin("the_server.create", {{"title", "t"}});
    test.run_until([&] { return !test.approval.empty(); });
    CHECK(test.call_of_others_works());
    const auto* pending = test.approvals->find(test.approval);
    REQUIRE(pending != nullptr);
    CHECK(pending->request.arguments == R"({"title":"t"})");
    CHECK(pending->request.tool == "the_server.create");
    CHECK(pending->request.action.principal == "analyst");
    CHECK(test.server->count("tools/call") == 1);  // the others'
    test.say(governance::ApprovalAnswer::kApproved);
    CHECK(json::parse(test.done->content) == json{{"status", "ok"}, {"result", "create"}});
    for (const auto& [answer, reason] :
         {std::pair{governance::ApprovalAnswer::kDenied, protocol::kToolRefusedDenied},
          std::pair{governance::ApprovalAnswer::kExpired, protocol::kToolRefusedNotApproved}}) {
        waits = test.begin("the_server.create");
        test.run_until([&] { return !test.approval.empty(); });
        test.say(answer);
        CHECK(json::parse(test.done->content)["reason"] == reason);
    }
    CHECK(test.server->count("tools/call") == 2);
}

TEST_CASE("a call that is given up or has changed is not made when the word comes", "[tools]") {
    Brokered test;
    auto waits = test.begin("the_server.create");
    test.run_until([&] { return !test.approval.empty(); });
    waits.reset();
    CHECK(test.approvals->size() == 0);
    test.run_until([&] { return test.logged("tool_result").size() == 1; });
    test.approval.clear();
    waits = test.begin("the_server.create");
    test.run_until([&] { return !test.approval.empty(); });
    test.tools[1]["description"] = "Something else.";
    test.server->parts->on_notice({{"method", "notifications/tools/list_changed"}});
    test.run_until([&] { return test.logged("tool_server").size() >= 2; });
    test.say(governance::ApprovalAnswer::kApproved);
    CHECK(json::parse(test.done->content)["reason"] == protocol::kToolRefusedUnavailable);
    CHECK(test.server->count("tools/call") == 0);
}

TEST_CASE("a session has so many calls that wait for a person", "[tools]") {
    Brokered test;
    std::vector<std::shared_ptr<void>> waiting;
    for (std::size_t i = 0; i < governance::kSessionApprovalsMax; ++i) {
        waiting.push_back(test.begin("the_server.create"));
    }
    test.run_until([&] { return test.approvals->size() == governance::kSessionApprovalsMax; });
    CHECK(test.reason_of("the_server.create") == protocol::kToolRefusedNotApproved);
}

}  // namespace
}  // namespace cellkeep::tools
