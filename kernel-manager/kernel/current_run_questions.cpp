// SPDX-License-Identifier: Apache-2.0
//
// What the code of a run asks on the stdin channel, for input and for a tool, and what clients ask:
// for its end.
#include "kernel-manager/kernel/current_run.hpp"
#include "protocol/limits.hpp"
#include "protocol/tool_request.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Channel;
using protocol::Message;

std::optional<Message> CurrentRun::question() const {
    return current_.has_value() ? current_->question() : std::nullopt;
}

void CurrentRun::on_question(const Message& request) {
    output_.flush();  // the prompt follows what was printed
    if (!current_.has_value() || process_.is_draining()) {
        return;
    }
    const std::string& type = request.header().msg_type;
    if (type == protocol::kToolRequest || type == protocol::kToolListRequest) {
        on_tool_request(request);
    } else if (type == "input_request" && request.frame().size() <= limits::kInputRequestBytesMax) {
        on_input_request(request);
    }
}

void CurrentRun::on_tool_request(const Message& request) {
    const bool is_list = request.header().msg_type == protocol::kToolListRequest;
    const auto header = protocol::make_header(
        std::string(is_list ? protocol::kToolListReply : protocol::kToolReply),
        current_->message().header().session,
        "cellkeep");
    // The caller may answer when the run, or even the session, is over.
    const auto reply = [this,
                        number = current_->number(),
                        header = protocol::to_json_text(header),
                        parent = protocol::to_json_text(request.header()),
                        alive = std::weak_ptr(keep_alive_())](std::string_view content) {
        const auto owner = alive.lock();
        if (!owner || !is_current(number)) {
            return;
        }
        protocol::MessageParts parts;
        parts.channel = Channel::kStdin;
        parts.header = header;
        parts.parent_header = parent;
        parts.content = content;
        // An answer has a bound far below that of a message.
        if (const auto message = Message::create(parts)) {
            send_or_kill(message.value());
        }
    };
    if (const auto& execution = current_->execution()) {
        execution->execution->ask_tool(request, reply);
    } else if (is_list) {
        reply(own_tools().list());
    } else {
        (void)own_tools().begin(request, reply);
    }
}

ToolCalls& CurrentRun::own_tools() {
    if (!own_tools_) {
        OperatorAccess access =
            owner_.operator_access ? owner_.operator_access() : OperatorAccess();
        own_tools_.emplace(std::vector<LentTool>(), std::move(access));
    }
    return *own_tools_;
}

/// One question at a time is passed on.
void CurrentRun::on_input_request(const Message& request) {
    if (const auto origin = current_->request().origin) {
        if (current_->on_input_request(request)) {
            origin->deliver(request);
        }
        return;
    }
    const json answer = current_->execution()->recorder.next_input();
    send_or_kill(Message::make(
        Channel::kStdin,
        protocol::make_header("input_reply", current_->message().header().session, "cellkeep"),
        protocol::to_json(request.header()),
        answer));
}

void CurrentRun::take_input_reply(const Message& reply) {
    const bool expected = current_.has_value() && process_.has_process() &&
                          reply.header().msg_type == "input_reply" &&
                          current_->take_input_reply(reply);
    if (expected) {
        send_or_kill(reply);
    }
}

Status CurrentRun::interrupt() {
    output_.flush();  // what was printed before it
    if (!current_.has_value()) {
        return ok();  // idle: nothing to stop
    }
    const RunningRequest::CutStep step = current_->interrupt();
    if (step == RunningRequest::CutStep::kAbandon) {
        finish_unsent();
        return ok();
    }
    output_.restore_pressure_soon();
    return take_step(step);
}

Status CurrentRun::take_step(RunningRequest::CutStep step) {
    // The code's last words must reach us even if a slow client has stopped the reading.
    output_.lift_pressure();
    return step == RunningRequest::CutStep::kInterrupt
               ? process_.interrupt()
               : Status(ok());  // its busy is awaited: on_busy()
}

}  // namespace cellkeep::session
