// SPDX-License-Identifier: Apache-2.0
//
// Messages that a driver may answer itself, of the types that its kernel.json names.
#include "kernels/driver/driver_interpreter.hpp"
#include "protocol/base64.hpp"
#include "protocol/json.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::kernels::driver {

using nlohmann::json;

bool DriverInterpreter::answers(std::string_view type) const {
    return std::find(about_.messages.begin(), about_.messages.end(), type) != about_.messages.end();
}

std::optional<json> DriverInterpreter::ask_message(
    const protocol::Message& message, const json& content) {
    json buffers = json::array();
    for (std::size_t index = 0; index < message.buffer_count(); ++index) {
        buffers.push_back(protocol::encode_base64(message.buffer(index)));
    }
    const auto object_of = [](std::string_view text) {
        auto value = protocol::parse_json_object(text, "message");
        return value ? std::move(value.value()) : json::object();
    };
    return ask(
        {{"request", "message"},
         {"type", message.header().msg_type},
         {"content", content},
         {"metadata", object_of(message.metadata_json())},
         {"buffers", std::move(buffers)},
         {"header", object_of(message.header_json())}},
        Interruptible::kYes);
}

json DriverInterpreter::comm_info(std::string_view target_name) {
    if (!answers("comm_info_request")) {
        return Interpreter::comm_info(target_name);
    }
    const auto done =
        ask({{"request", "message"},
             {"type", "comm_info_request"},
             {"content", {{"target_name", target_name}}}},
            Interruptible::kNo);
    return is_ok(done) ? object_field(object_field(*done, "content"), "comms") : json::object();
}

void DriverInterpreter::receive_comm(const protocol::Message& message) {
    const Result<json> content = message.parse_content();
    if (!content || !answers(message.header().msg_type)) {
        Interpreter::receive_comm(message);
        return;
    }
    // Ignored: a comm message has no reply, and a driver that broke down is noticed by the loop.
    (void)ask_message(message, content.value());
}

json DriverInterpreter::history(const json& request) {
    if (!answers("history_request")) {
        return history_.answer(request);
    }
    const auto done =
        ask({{"request", "message"}, {"type", "history_request"}, {"content", request}},
            Interruptible::kNo);
    json content = is_ok(done) ? object_field(*done, "content") : json::object();
    content["status"] = "ok";
    if (!content.contains("history")) {
        content["history"] = json::array();
    }
    return content;
}

void DriverInterpreter::receive_debug(const protocol::Message& message) {
    const Result<json> content = message.parse_content();
    if (!content || !answers("debug_request")) {
        Interpreter::receive_debug(message);
        return;
    }
    const auto send = [&](protocol::Channel channel, const char* type, const json& what) {
        const std::string text = protocol::dump_json(what);
        // Ignored: fails only when the peer is gone.
        (void)parts().outbox.send(channel, message.header_json(), {.type = type, .content = text});
    };
    send(protocol::Channel::kIopub, "status", {{"execution_state", "busy"}});
    const auto done = ask_message(message, content.value());
    send(
        protocol::Channel::kControl,
        "debug_reply",
        is_ok(done) ? object_field(*done, "content")
                    : make_error_content("DriverError", "the driver did not answer"));
    send(protocol::Channel::kIopub, "status", {{"execution_state", "idle"}});
}

}  // namespace cellkeep::kernels::driver
