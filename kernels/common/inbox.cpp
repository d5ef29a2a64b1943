// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/inbox.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace cellkeep::kernels {

Result<std::optional<protocol::Message>> Inbox::next() {
    if (!held_.empty()) {
        std::optional<protocol::Message> message(std::move(held_.front()));
        held_.pop_front();
        return message;
    }
    return link_.read();
}

Status Inbox::request_input(Outbox& outbox, std::string_view prompt, bool password) {
    const nlohmann::json content{{"prompt", prompt}, {"password", password}};
    const std::string text = protocol::dump_json(content);
    const std::string parent = outbox.output_parent();
    BOOST_OUTCOME_TRY(
        input_request_id_,
        outbox.send(protocol::Channel::kStdin, parent, {.type = "input_request", .content = text}));
    return ok();
}

Result<std::optional<InputReply>> Inbox::read_input() {
    BOOST_OUTCOME_TRY(std::optional<protocol::Message> message, link_.read());
    if (!message) {
        return Error(ErrorCode::kUnavailable, "kernel link: closed while waiting for input");
    }
    if (message->channel() != protocol::Channel::kStdin) {
        if (held_.size() >= kHeldMessagesMax) {
            return Error(
                ErrorCode::kLimitExceeded,
                "kernel link: more than " + std::to_string(kHeldMessagesMax) +
                    " messages while waiting for input");
        }
        held_.push_back(std::move(*message));
        return std::optional<InputReply>{};
    }
    // JupyterLab answers with parent {}; jupyter_client names the request. Any other parent is the
    // answer to a question that was interrupted.
    const std::string& parent = message->parent().msg_id;
    const bool ours = parent.empty() || parent == input_request_id_;
    if (message->header().msg_type != "input_reply" || !ours) {
        return std::optional<InputReply>{};
    }
    BOOST_OUTCOME_TRY(const nlohmann::json content, message->parse_content());
    InputReply reply;
    if (const auto value = content.find("value"); value != content.end() && value->is_string()) {
        reply.value = value->get<std::string>();
    }
    if (const auto eof = content.find("eof"); eof != content.end() && eof->is_boolean()) {
        reply.eof = eof->get<bool>();
    }
    return std::optional<InputReply>(std::move(reply));
}

}  // namespace cellkeep::kernels
