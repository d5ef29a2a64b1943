// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/refusal_problem.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <variant>

namespace cellkeep::agent {
namespace {

nlohmann::json body_of(const http::Response& response) {
    return nlohmann::json::parse(std::get<std::string>(response.body));
}

TEST_CASE("a budget that is used up says which, how much and how much of it", "[agent][refusal]") {
    const auto response = http::to_response(to_problem(
        {session::LimitRefusal::Kind::kBudget,
         "total_cpu_ms",
         120,
         100,
         std::nullopt,
         "Used up.",
         "Go."}));
    const auto body = body_of(response);
    CHECK(response.status == 429);
    CHECK(body["type"] == "/problems/budget-exhausted");
    CHECK(body["budget"] == "total_cpu_ms");
    CHECK(body["used"] == 120);
    CHECK(body["limit"] == 100);
    CHECK(body["detail"] == "Used up. Go.");
    CHECK(response.headers.get("Retry-After").empty());
}

TEST_CASE("an open breaker says when to try again", "[agent][refusal]") {
    const auto response = http::to_response(to_problem(
        {session::LimitRefusal::Kind::kCircuitOpen,
         "consecutive_failures",
         10,
         10,
         std::chrono::milliseconds(9001),
         "Failed.",
         "Think."}));
    const auto body = body_of(response);
    CHECK(response.status == 429);
    CHECK(body["type"] == "/problems/circuit-open");
    CHECK(body["failures"] == 10);
    CHECK(body["threshold"] == 10);
    CHECK(body["retry_after_ms"] == 9001);
    CHECK(response.headers.get("Retry-After") == "10");
}

}  // namespace
}  // namespace cellkeep::agent
