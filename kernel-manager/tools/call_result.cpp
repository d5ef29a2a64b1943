// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/call_result.hpp"

#include "kernel-manager/tools/limits.hpp"
#include "kernel-manager/tools/server_tool.hpp"
#include "protocol/json.hpp"
#include "protocol/tool_request.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::tools {

namespace {

using nlohmann::json;

bool is_text_block(const json& block) {
    return block.is_object() && block.value("type", json()) == "text" && block.contains("text") &&
           block["text"].is_string();
}

/// The texts among the content, up to what a failure may have.
std::string texts_of(const json& content) {
    std::string text;
    for (const json& block : content) {
        if (is_text_block(block) && text.size() < kFailureBytesMax) {
            text += text.empty() ? "" : "\n";
            text += block["text"].get_ref<const std::string&>();
        }
    }
    return text;
}

json value_of(const json& result, bool wraps_result) {
    const auto structured = result.find("structuredContent");
    if (structured != result.end() && !structured->is_null()) {  // an object up to 2025-11-25
        const bool wrapped = wraps_result && structured->is_object() && structured->size() == 1;
        const auto inner = wrapped ? structured->find("result") : structured->end();
        return inner == structured->end() ? *structured : *inner;
    }
    const json& content = result.at("content");
    if (content.empty()) {
        return nullptr;
    }
    if (!std::all_of(content.begin(), content.end(), is_text_block)) {
        return content;
    }
    if (content.size() == 1) {
        return content[0]["text"];
    }
    json texts = json::array();
    for (const json& block : content) {
        texts.push_back(block["text"]);
    }
    return texts;
}

}  // namespace

session::ToolOutcome refused_call(std::string_view reason, std::string_view message) {
    return {
        protocol::dump_json(
            {{"status", "error"},
             {"reason", reason},
             {"message", plain_text(message, kFailureBytesMax)}}),
        true};
}

json result_value(const json& response, bool wraps_result) {
    return value_of(response.at("result"), wraps_result);
}

session::ToolOutcome read_call_result(const json& response, bool wraps_result) {
    if (const auto error = response.find("error"); error != response.end()) {
        const bool says =
            error->is_object() && error->contains("message") && (*error)["message"].is_string();
        return refused_call(
            protocol::kToolRefusedFailed,
            says ? (*error)["message"].get<std::string>() : "The tool server refused the call.");
    }
    const json& result = response["result"];
    if (result.is_object() && result.value("resultType", json()) == "input_required") {
        return refused_call(
            protocol::kToolRefusedFailed, "The tool asks its user for input, and code has none.");
    }
    const auto content = result.is_object() ? result.find("content") : result.end();
    if (content == result.end() || !content->is_array()) {
        return refused_call(
            protocol::kToolRefusedFailed, "The tool server's answer is no result of a call.");
    }
    if (result.value("isError", json()) == true) {
        const std::string text = texts_of(*content);
        return refused_call(protocol::kToolRefusedFailed, text.empty() ? "The tool failed." : text);
    }
    return {
        protocol::dump_json({{"status", "ok"}, {"result", value_of(result, wraps_result)}}), false};
}

session::ToolOutcome failed_call(const Error& why) {
    switch (why.code()) {
        case ErrorCode::kTimeout:
            return refused_call(
                protocol::kToolRefusedTimeout, "The tool server gave no answer in time.");
        case ErrorCode::kLimitExceeded:
            return refused_call(
                protocol::kToolRefusedTooLarge, "The tool server: " + why.message() + ".");
        default:
            return refused_call(
                protocol::kToolRefusedUnavailable, "The tool server: " + why.message() + ".");
    }
}

}  // namespace cellkeep::tools
