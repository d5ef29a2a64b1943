// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/long_result.hpp"

#include "kernel-manager/tools/call_result.hpp"
#include "protocol/json.hpp"
#include "protocol/limits.hpp"
#include "protocol/tool_request.hpp"

#include <utility>

namespace cellkeep::tools {

namespace {

constexpr const char* kPlainText = "text/plain";
constexpr const char* kJson = "application/json";

session::ToolOutcome named_file(session::ToolFile file) {
    session::ToolOutcome outcome;
    outcome.content = protocol::dump_json(
        {{"status", "ok"},
         {"file",
          {{"path", file.path},
           {"bytes", file.bytes},
           {"sha256", file.sha256},
           {"media_type", file.media_type}}}});
    outcome.file = std::move(file);
    return outcome;
}

}  // namespace

session::ToolOutcome keep_long_result(
    session::ToolResultFiles* files,
    const std::string& execution_id,
    const nlohmann::json& response,
    bool wraps_result) {
    if (files == nullptr) {
        return refused_call(
            protocol::kToolRefusedTooLarge,
            "The result has more than " + std::to_string(limits::kToolResultBytesMax) +
                " bytes, and this session keeps no files of results.");
    }
    const nlohmann::json value = result_value(response, wraps_result);
    const bool is_text = value.is_string();
    auto kept = files->add(
        execution_id,
        is_text ? value.get_ref<const std::string&>() : protocol::dump_json(value),
        is_text ? kPlainText : kJson);
    if (kept.has_error()) {
        return refused_call(protocol::kToolRefusedTooLarge, kept.error().message());
    }
    return named_file(std::move(kept).value());
}

}  // namespace cellkeep::tools
