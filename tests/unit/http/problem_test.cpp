// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/problem.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace cellkeep::http {
namespace {

nlohmann::json body_of(const Response& response) {
    return nlohmann::json::parse(std::get<std::string>(response.body));
}

TEST_CASE("a problem has the five members of RFC 9457 and its errors", "[http][problem]") {
    Problem problem = make_problem(422, "x is wrong");
    problem.instance = "/v1/x";
    problem.errors = {{"/a/0", "must be a string"}};
    const Response response = to_response(problem);
    CHECK(response.status == 422);
    CHECK(response.headers.get("Content-Type") == "application/problem+json");
    const auto body = body_of(response);
    CHECK(body["type"] == "/problems/invalid-request");
    CHECK(body["title"].is_string());
    CHECK(body["status"] == 422);
    CHECK(body["detail"] == "x is wrong");
    CHECK(body["instance"] == "/v1/x");
    CHECK(body["errors"][0]["pointer"] == "/a/0");
    CHECK(body["errors"][0]["message"] == "must be a string");
}

TEST_CASE("every error code has its HTTP status", "[http][problem]") {
    const auto [code, status] = GENERATE(table<ErrorCode, int>({
        {ErrorCode::kInvalidArgument, 422},
        {ErrorCode::kNotFound, 404},
        {ErrorCode::kConflict, 409},
        {ErrorCode::kPermissionDenied, 403},
        {ErrorCode::kLimitExceeded, 429},
        {ErrorCode::kUnavailable, 503},
        {ErrorCode::kTimeout, 504},
        {ErrorCode::kCancelled, 503},
        {ErrorCode::kProtocol, 502},
        {ErrorCode::kSystem, 500},
    }));
    CHECK(problem_from(Error(code, "m")).status == status);
}

TEST_CASE("a hint becomes part of the detail", "[http][problem]") {
    CHECK(problem_from(Error(ErrorCode::kConflict, "no", "Do this.")).detail == "no. Do this.");
    CHECK(problem_from(Error(ErrorCode::kConflict, "No.", "Do this.")).detail == "No. Do this.");
}

TEST_CASE("401 says how to authenticate; 429 and 503 say when to try again", "[http][problem]") {
    CHECK_FALSE(to_response(make_problem(401, "")).headers.get("WWW-Authenticate").empty());
    CHECK_FALSE(to_response(make_problem(429, "")).headers.get("Retry-After").empty());
    CHECK_FALSE(to_response(make_problem(503, "")).headers.get("Retry-After").empty());
    CHECK(to_response(make_problem(404, "")).headers.get("Retry-After").empty());
}

TEST_CASE("text that is not UTF-8 cannot break a problem", "[http][problem]") {
    CHECK(body_of(to_response(make_problem(400, "\xff\xfe")))["status"] == 400);
}

TEST_CASE("the instance is filled in only where it is missing", "[http][problem]") {
    Response response = to_response(make_problem(404, "d"));
    set_instance(response, "/a");
    set_instance(response, "/b");
    CHECK(body_of(response)["instance"] == "/a");
    Response other = make_json(404, {{"instance", ""}});
    set_instance(other, "/a");
    CHECK(body_of(other)["instance"] == "");
}

}  // namespace
}  // namespace cellkeep::http
