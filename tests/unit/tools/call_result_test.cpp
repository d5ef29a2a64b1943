// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/call_result.hpp"

#include "kernel-manager/tools/limits.hpp"
#include "protocol/tool_request.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::tools {
namespace {

using nlohmann::json;

json text_block(const std::string& text) {
    return {{"type", "text"}, {"text", text}};
}

json content_of(const session::ToolOutcome& outcome) {
    return json::parse(outcome.content);
}

json value_of_result(const json& result, bool wraps = false) {
    const session::ToolOutcome outcome = read_call_result({{"result", result}}, wraps);
    CHECK_FALSE(outcome.failed);
    const json content = content_of(outcome);
    CHECK(content["status"] == "ok");
    return content["result"];
}

std::string refusal_of(const json& response) {
    const session::ToolOutcome outcome = read_call_result(response, false);
    CHECK(outcome.failed);
    const json content = content_of(outcome);
    CHECK(content["status"] == "error");
    CHECK(content["reason"] == protocol::kToolRefusedFailed);
    return content["message"];
}

TEST_CASE("a result is what is structured, else its text, else its content", "[tools]") {
    const json structured = {{"degrees", -3}};
    CHECK(
        value_of_result({{"content", {text_block("t")}}, {"structuredContent", structured}}) ==
        structured);
    CHECK(value_of_result({{"content", {text_block("t")}}}) == "t");
    for (const json& value : {json(5), json("s"), json(false), json::array({1, 2})}) {
        CHECK(
            value_of_result({{"content", {text_block("t")}}, {"structuredContent", value}}) ==
            value);
    }
    CHECK(value_of_result({{"content", {text_block("t")}}, {"structuredContent", nullptr}}) == "t");
    CHECK(value_of_result({{"content", {text_block("a"), text_block("b")}}}) == json{"a", "b"});
    CHECK(value_of_result({{"content", json::array()}}) == nullptr);
    const json mixed = {text_block("a"), {{"type", "image"}, {"data", "aGk="}}};
    CHECK(value_of_result({{"content", mixed}}) == mixed);
}

TEST_CASE("a result that was wrapped because it is no object is unwrapped", "[tools]") {
    const json wrapped = {{"content", json::array()}, {"structuredContent", {{"result", 7}}}};
    CHECK(value_of_result(wrapped, true) == 7);
    CHECK(value_of_result(wrapped, false) == json{{"result", 7}});
    const json more = {
        {"content", json::array()}, {"structuredContent", {{"result", 7}, {"more", 1}}}};
    CHECK(value_of_result(more, true) == json{{"result", 7}, {"more", 1}});
}

TEST_CASE("a failure says what the tool says", "[tools]") {
    CHECK(refusal_of({{"result", {{"isError", true}, {"content", {text_block("no")}}}}}) == "no");
    CHECK(
        refusal_of({{"result", {{"isError", true}, {"content", json::array()}}}}) ==
        "The tool failed.");
    CHECK(refusal_of({{"error", {{"code", -32602}, {"message", "bad\x1b[31m"}}}}) == "bad [31m");
    for (const json& odd :
         {json(1), json(nullptr), json::object(), json{{"content", 1}}, json::array()}) {
        CAPTURE(odd.dump());
        CHECK_FALSE(refusal_of({{"result", odd}}).empty());
    }
    CHECK_FALSE(refusal_of({{"error", "text"}}).empty());
    const std::string longest(kFailureBytesMax + 1, 'x');
    CHECK(
        refusal_of({{"result", {{"isError", true}, {"content", {text_block(longest)}}}}}).size() ==
        kFailureBytesMax);
}

TEST_CASE("a tool that asks its user for input has failed", "[tools]") {
    const json asks = {{"result", {{"resultType", "input_required"}, {"requestState", "opaque"}}}};
    CHECK(refusal_of(asks).find("input") != std::string::npos);
    // What it says besides does not count: it is not over.
    json odd = asks;
    odd["result"]["content"] = {text_block("t")};
    CHECK(refusal_of(odd) == refusal_of(asks));
    CHECK(value_of_result({{"resultType", "complete"}, {"content", {text_block("t")}}}) == "t");
    CHECK(value_of_result({{"resultType", 5}, {"content", {text_block("t")}}}) == "t");
}

TEST_CASE("a call without a response has a reason for programs", "[tools]") {
    const auto reason = [](ErrorCode code) {
        return content_of(failed_call({code, "w"}))["reason"];
    };
    CHECK(reason(ErrorCode::kTimeout) == protocol::kToolRefusedTimeout);
    CHECK(reason(ErrorCode::kLimitExceeded) == protocol::kToolRefusedTooLarge);
    CHECK(reason(ErrorCode::kUnavailable) == protocol::kToolRefusedUnavailable);
    CHECK(reason(ErrorCode::kProtocol) == protocol::kToolRefusedUnavailable);
}

}  // namespace
}  // namespace cellkeep::tools
