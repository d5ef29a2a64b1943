// SPDX-License-Identifier: Apache-2.0
//
// Approvals of clients of 2026-07-28: a result asks, and the same request brings the answer.
#include "kernel-manager/mcp/limits.hpp"
#include "tests/unit/mcp/waiting_run.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>

namespace cellkeep::mcp::test {
namespace {

TEST_CASE("a result asks for an approval, and the answer decides", "[mcp][approvals]") {
    for (const auto& [answer, word] :
         {std::pair{kApproves, "approved by admin"},
          std::pair{decide("deny"), "denied by admin"},
          std::pair{json{{"action", "decline"}}, "denied by admin"}}) {
        CAPTURE(answer);
        Waiting test;
        const json asks = test.first();
        CHECK(asks["resultType"] == "input_required");
        const json& question = asks["inputRequests"]["approval"];
        CHECK(question["method"] == "elicitation/create");
        const std::string text = question["params"]["message"];
        CHECK(text.find("op.create") != std::string::npos);
        CHECK(text.find(R"({"title":"t"})") != std::string::npos);
        CHECK(test.said().empty());
        const json done = test.stateless(Waiting::again(asks["requestState"], answer))["result"];
        CHECK(done["resultType"] == "complete");
        CHECK(done["structuredContent"]["status"] == "ok");
        CHECK(test.said() == Words{word});
        CHECK(test.session->requests.size() == 1);  // the code did not run twice
    }
}

TEST_CASE("each call of a run is asked about, one after the other", "[mcp][approvals]") {
    Waiting test(2);
    const json first = test.first();
    const std::string first_id = test.tools->id;
    const json second = test.stateless(Waiting::again(first["requestState"], kApproves))["result"];
    CHECK(second["resultType"] == "input_required");
    CHECK(test.tools->id != first_id);
    // The state of the first round says nothing about the second call.
    const json replayed =
        test.stateless(Waiting::again(first["requestState"], kApproves))["result"];
    CHECK(replayed["resultType"] == "input_required");
    CHECK(test.said() == Words{"approved by admin"});
    const json done =
        test.stateless(Waiting::again(second["requestState"], decide("deny")))["result"];
    CHECK(done["structuredContent"]["status"] == "ok");
    CHECK(test.said() == Words{"approved by admin", "denied by admin"});
}

TEST_CASE("what comes after the end changes nothing", "[mcp][approvals]") {
    Waiting test;
    const json asks = test.first();
    test.expire();
    CHECK(test.said() == Words{"expired by "});
    for (int i = 0; i < 2; ++i) {  // also when it is replayed
        const json done = test.stateless(Waiting::again(asks["requestState"], kApproves))["result"];
        CHECK(done["resultType"] == "complete");
        CHECK(done["structuredContent"]["execution_id"] == "exe_1");
    }
    CHECK(test.said() == Words{"expired by "});
    CHECK(test.session->requests.size() == 1);
    test.session->executions.clear();  // it is no longer remembered
    json params = Waiting::again(asks["requestState"], kApproves);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = kShowsForms;
    const json gone = test.server.call("tools/call", params).message()["result"];
    CHECK(gone["structuredContent"]["error"]["kind"] == "unknown_execution");
    CHECK(test.session->requests.size() == 1);
}

TEST_CASE("a forged state, or another's, decides nothing", "[mcp][approvals]") {
    Waiting test;
    const json asks = test.first();
    const std::string state = asks["requestState"];
    const auto refused = [&](const json& params, const Fields& fields = {}) {
        const json answer = test.stateless(params, fields);
        CAPTURE(answer);
        return answer.contains("error") && answer["error"]["code"] == -32602;
    };
    CHECK(refused(Waiting::again(state + "x", kApproves)));
    CHECK(refused(Waiting::again("", kApproves)));
    CHECK(refused(Waiting::again(5, kApproves)));
    CHECK(refused(Waiting::again(state.substr(0, state.size() / 2), kApproves)));
    // Another principal's request, and another request of the same one.
    CHECK(refused(Waiting::again(state, kApproves), bearer(kAliceToken)));
    json other = Waiting::again(state, kApproves);
    other["arguments"]["code"] = "2";
    CHECK(refused(other));
    // What is no answer at all.
    for (const json& wrong :
         {json("approve"), json{{"action", "yes"}}, json{{"action", "accept"}}, json(nullptr)}) {
        CHECK(refused(Waiting::again(state, wrong)));
    }
    CHECK(test.said().empty());
    CHECK(test.server.approvals->size() == 1);
    CHECK(test.session->requests.size() == 1);
    // The same state is still good for its own request.
    CHECK(test.stateless(Waiting::again(state, kApproves)).contains("result"));
    CHECK(test.said() == Words{"approved by admin"});
}

TEST_CASE("answers without a state run the code anew and decide nothing", "[mcp][approvals]") {
    Waiting test;
    json params = kRun;
    params["inputResponses"] = {{"approval", kApproves}};
    CHECK(test.stateless(params)["result"]["resultType"] == "input_required");
    CHECK(test.said().empty());
}

TEST_CASE("a form that is closed leaves the call to the others", "[mcp][approvals]") {
    Waiting test;
    json params = kRun;
    params["arguments"]["wait_ms"] = 300;
    const json asks = test.stateless(params)["result"];
    REQUIRE(asks["resultType"] == "input_required");
    params["requestState"] = asks["requestState"];
    CHECK(test.stateless(params)["result"]["resultType"] == "input_required");  // not answered
    params["inputResponses"] = {{"approval", {{"action", "cancel"}}}};
    const json waits = test.stateless(params)["result"];
    CHECK(waits["resultType"] == "complete");
    CHECK(waits["structuredContent"]["status"] == "waiting_approval");
    CHECK(waits["structuredContent"]["approval"]["id"] == test.tools->id);
    CHECK(test.said().empty());
    CHECK(test.server.approvals->size() == 1);
}

TEST_CASE("who may not approve is not asked, and is told who may", "[mcp][approvals]") {
    const auto ask_as = [](const Fields& fields, const json& shows) {
        Waiting test;
        test.session->edit().owner = "alice";
        json params = kRun;
        params["arguments"]["wait_ms"] = 300;
        const json result = test.stateless(params, fields, shows)["result"];
        CAPTURE(result);
        CHECK(test.said().empty());
        CHECK(test.server.approvals->size() == 1);
        return result;
    };
    for (const json& told :
         {ask_as(bearer(kAliceToken), kShowsForms),
          ask_as({}, json::object()),
          ask_as({}, {{"elicitation", {{"url", json::object()}}}})}) {
        CHECK(told["resultType"] == "complete");
        CHECK(told["isError"] == false);
        CHECK(told["structuredContent"]["status"] == "waiting_approval");
        CHECK(told["structuredContent"]["approval"]["tool"] == "op.create");
        const std::string text = told["content"][0]["text"];
        CHECK(text.find("an administrator answers apr_") != std::string::npos);
        CHECK(text.find("/v1/approvals") != std::string::npos);
    }
    CHECK(ask_as({}, kShowsForms)["resultType"] == "input_required");
}

TEST_CASE("the rounds of one request ask at most kCallApprovalsMax times", "[mcp][approvals]") {
    Waiting test(static_cast<int>(kCallApprovalsMax) + 1);
    json params = kRun;
    params["arguments"]["wait_ms"] = 300;
    json result = test.stateless(params)["result"];
    for (std::size_t round = 0; round < kCallApprovalsMax; ++round) {
        CAPTURE(round);
        REQUIRE(result["resultType"] == "input_required");
        params["requestState"] = result["requestState"];
        params["inputResponses"] = {{"approval", kApproves}};
        result = test.stateless(params)["result"];
    }
    CHECK(result["structuredContent"]["status"] == "waiting_approval");
    CHECK(test.said().size() == kCallApprovalsMax);
    // The next request begins anew.
    const json read = {
        {"name", "read_output"}, {"arguments", {{"execution_id", "exe_1"}, {"session", "ses_1"}}}};
    const json asks = test.stateless(read)["result"];
    REQUIRE(asks["resultType"] == "input_required");
    json again = read;
    again["requestState"] = asks["requestState"];
    again["inputResponses"] = {{"approval", kApproves}};
    CHECK(test.stateless(again)["result"]["structuredContent"]["status"] == "ok");
}

}  // namespace
}  // namespace cellkeep::mcp::test
