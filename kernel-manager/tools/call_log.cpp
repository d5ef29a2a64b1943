// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/call_log.hpp"

#include "protocol/sha256.hpp"

#include <utility>

namespace cellkeep::tools {

namespace {

nlohmann::json fields_of(const LoggedCall& call) {
    return {
        {"session", call.caller.session_id},
        {"execution", call.caller.execution_id},
        {"principal", call.caller.principal},
        {"tool", call.name}};
}

}  // namespace

void CallLog::begin(
    const LoggedCall& call, std::string_view arguments, const governance::Decision& decision) {
    nlohmann::json fields = fields_of(call);
    fields["decision"] = to_string(decision.verdict);
    fields["reason"] = to_string(decision.reason);
    fields["arguments_bytes"] = arguments.size();
    fields["arguments_sha256"] = protocol::sha256_hex(arguments);
    if (suppressed_ > 0) {
        fields["suppressed"] = std::exchange(suppressed_, 0);
    }
    write_("tool_call", fields);
}

void CallLog::approval(
    const LoggedCall& call,
    const std::string& id,
    std::string_view what,
    const std::string& by) const {
    nlohmann::json fields = fields_of(call);
    fields["approval"] = id;
    fields["what"] = what;
    fields["by"] = by;
    write_("approval", fields);
}

void CallLog::end(
    const LoggedCall& call,
    const session::ToolOutcome& outcome,
    bool given_up,
    std::chrono::milliseconds took) const {
    nlohmann::json fields = fields_of(call);
    fields["status"] = outcome.failed ? "error" : "ok";
    fields["given_up"] = given_up;
    fields["bytes"] = outcome.content.size();
    fields["sha256"] = protocol::sha256_hex(outcome.content);
    fields["ms"] = took.count();
    if (outcome.file) {
        fields["file"] = outcome.file->path;
        fields["file_bytes"] = outcome.file->bytes;
        fields["file_sha256"] = outcome.file->sha256;
    }
    write_("tool_result", fields);
}

}  // namespace cellkeep::tools
