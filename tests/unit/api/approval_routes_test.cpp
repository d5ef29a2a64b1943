// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <utility>

namespace cellkeep::api::test {
namespace {

using governance::ApprovalAnswer;

constexpr const char* kApprove = R"({"decision":"approve"})";

/// A call of alice's session waits.
struct WaitingApi {
    WaitingApi() {
        governance::ApprovalRequest request;
        request.action = {"alice", "github", "create_issue", "d1"};
        request.session_id = "ses_1";
        request.execution_id = "exe_1";
        request.tool = "github.create_issue";
        request.description = "Opens an issue.";
        request.arguments = R"({"title":"t"})";
        auto asked = api.approvals->ask(
            std::move(request), [this](ApprovalAnswer given, const std::string& principal) {
                answer = given;
                by = principal;
            });
        REQUIRE(asked.has_value());
        waiting = std::move(asked).value();
        path = "/v1/approvals/" + waiting.id;
    }
    Api::Answer ask_as(const std::string& token, const std::string& method, const std::string& to) {
        return api.ask(
            method,
            to,
            method == "GET" ? "" : kApprove,
            {{"Authorization", "Bearer " + token}, {"Content-Type", "application/json"}});
    }

    Api api;
    governance::Approvals::Waiting waiting;
    std::string path;
    std::optional<ApprovalAnswer> answer;
    std::string by;
};

TEST_CASE("an administrator sees what waits and answers it once", "[agent][approvals]") {
    WaitingApi test;
    const auto list = test.api.ask("GET", "/v1/approvals");
    CHECK(list.status == 200);
    REQUIRE(list.json["approvals"].size() == 1);
    const auto& one = list.json["approvals"][0];
    CHECK(one["id"] == test.waiting.id);
    CHECK(one["owner"] == "alice");
    CHECK(one["tool"] == "github.create_issue");
    CHECK(one["reason"] == "rule");
    CHECK(one["arguments"] == R"({"title":"t"})");
    CHECK(test.api.ask("POST", test.path, kApprove).status == 204);
    CHECK(test.answer == ApprovalAnswer::kApproved);
    CHECK(test.by == "admin");
    test.answer.reset();
    CHECK(test.api.ask("POST", test.path, R"({"decision":"deny"})").status == 409);
    CHECK_FALSE(test.answer);
    CHECK(test.api.ask("GET", "/v1/approvals").json["approvals"].empty());
}

TEST_CASE("a denial is an answer", "[agent][approvals]") {
    WaitingApi test;
    CHECK(test.api.ask("POST", test.path, R"({"decision":"deny"})").status == 204);
    CHECK(test.answer == ApprovalAnswer::kDenied);
}

TEST_CASE("no agent approves, and of another's nothing is there", "[agent][approvals]") {
    WaitingApi test;
    CHECK(test.ask_as(kAliceToken, "GET", "/v1/approvals").json["approvals"].size() == 1);
    CHECK(test.ask_as(kBobToken, "GET", "/v1/approvals").json["approvals"].empty());
    CHECK(test.ask_as(kEveToken, "GET", "/v1/approvals").json["approvals"].size() == 1);
    const auto own = test.ask_as(kAliceToken, "POST", test.path);
    CHECK(own.status == 403);
    CHECK(own.json["type"] == "/problems/approval-by-administrator");
    const auto others = test.ask_as(kBobToken, "POST", test.path);
    CHECK(others.status == 404);
    CHECK(others.json["type"] == "/problems/unknown-approval");
    CHECK(test.ask_as(kEveToken, "POST", test.path).status == 403);
    CHECK_FALSE(test.answer);
    CHECK(test.api.ask("POST", test.path, kApprove).status == 204);
    CHECK(test.ask_as(kBobToken, "POST", test.path).status == 404);
}

TEST_CASE("what is no answer changes nothing", "[agent][approvals]") {
    WaitingApi test;
    for (const char* body :
         {"{}",
          "[]",
          "1",
          R"({"decision":"yes"})",
          R"({"decision":1})",
          R"({"decision":null})",
          R"({"decision":"approve","more":1})"}) {
        CAPTURE(body);
        CHECK(test.api.ask("POST", test.path, body).status == 422);
    }
    CHECK(test.api.ask("POST", test.path, "").status == 400);
    CHECK(test.api.ask("POST", test.path, "{").status == 400);
    CHECK(test.api.ask("POST", "/v1/approvals/apr_0", kApprove).status == 404);
    CHECK_FALSE(test.answer);
    CHECK(test.api.ask("POST", test.path, kApprove).status == 204);
}

}  // namespace
}  // namespace cellkeep::api::test
