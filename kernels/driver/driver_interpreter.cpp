// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/driver_interpreter.hpp"

#include "kernels/driver/language_folder.hpp"
#include "kernels/driver/reply_contents.hpp"
#include "protocol/base64.hpp"
#include "protocol/json.hpp"

#include <utility>

namespace cellkeep::kernels::driver {

using nlohmann::json;

Result<std::unique_ptr<Interpreter>> DriverInterpreter::create(
    const KernelParts& parts, const Options& options) {
    BOOST_OUTCOME_TRY(protocol::KernelJson about, read_kernel_json(options.folder));
    BOOST_OUTCOME_TRY(const Command command, make_command(about, options.folder, options.values));
    BOOST_OUTCOME_TRY(InterruptSignals signals, InterruptSignals::block());
    BOOST_OUTCOME_TRY(DriverProcess process, DriverProcess::start(command));
    std::unique_ptr<DriverInterpreter> interpreter(new DriverInterpreter(
        parts, std::move(about), options, std::move(process), std::move(signals)));
    BOOST_OUTCOME_TRY(interpreter->conversation_.wait_until_ready());
    return std::unique_ptr<Interpreter>(std::move(interpreter));
}

DriverInterpreter::DriverInterpreter(
    const KernelParts& parts,
    protocol::KernelJson about,
    const Options& options,
    DriverProcess process,
    InterruptSignals signals)
    : Interpreter(parts),
      about_(std::move(about)),
      publisher_(parts),
      conversation_(
          parts,
          std::move(process),
          std::move(signals),
          {about_.language, about_.interrupt, options.ready_max, options.answer_max},
          [this](const json& event) { return take_event(event); }) {}

Status DriverInterpreter::take_event(const json& event) {
    if (keeps_output_ && text_field(event, "event") == "result") {
        const std::string text = text_field(object_field(event, "data"), "text/plain");
        if (!text.empty()) {
            history_.set_output(text);
        }
    }
    return publisher_.publish(event);
}

Reply DriverInterpreter::execute(const ExecuteRequest& request, int count) {
    publisher_.begin(count, request.silent);
    keeps_output_ = request.store_history;
    if (request.store_history) {
        history_.add(count, request.code);
    }
    const std::optional<json> done = conversation_.ask(
        {{"request", "execute"},
         {"code", request.code},
         {"count", count},
         {"silent", request.silent},
         {"store_history", request.store_history},
         {"allow_stdin", request.allow_stdin},
         {"user_expressions", request.user_expressions}},
        {.interruptible = true, .allow_stdin = request.allow_stdin, .allow_tools = true});
    keeps_output_ = false;
    if (!done) {
        const std::string why = conversation_.fault()->message();
        const CodeFault fault{"DriverError", why, json::array({"DriverError: " + why})};
        publisher_.publish_error(fault);
        return make_fault_reply(fault);
    }
    if (!is_ok(done)) {
        publisher_.publish_error(read_fault(*done));
    }
    return make_execute_reply(*done);
}

json DriverInterpreter::complete_request_impl(const std::string& code, int cursor_pos) {
    const json cursor = clamp_cursor(code, cursor_pos);
    return make_complete_reply(
        conversation_.ask({{"request", "complete"}, {"code", code}, {"cursor", cursor}}), cursor);
}

json DriverInterpreter::inspect_request_impl(
    const std::string& code, int cursor_pos, int detail_level) {
    return make_inspect_reply(conversation_.ask(
        {{"request", "inspect"},
         {"code", code},
         {"cursor", clamp_cursor(code, cursor_pos)},
         {"detail", detail_level}}));
}

json DriverInterpreter::is_complete_request_impl(const std::string& code) {
    return make_is_complete_reply(conversation_.ask({{"request", "is_complete"}, {"code", code}}));
}

json DriverInterpreter::kernel_info_request_impl() {
    return make_kernel_info(about_, conversation_.ready());
}

json DriverInterpreter::adopt(const json& request) {
    const auto done = conversation_.ask(
        {{"request", "adopt"},
         {"env", object_field(request, "env")},
         {"directory", text_field(request, "working_directory")}});
    if (is_ok(done)) {
        return {{"status", "ok"}};
    }
    if (!done) {
        return make_error_content("DriverError", conversation_.fault()->message());
    }
    const CodeFault fault = read_fault(*done);
    return make_error_content(fault.name, fault.message);
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
    return conversation_.ask(
        {{"request", "message"},
         {"type", message.header().msg_type},
         {"content", content},
         {"metadata", object_of(message.metadata_json())},
         {"buffers", std::move(buffers)},
         {"header", object_of(message.header_json())}},
        {.interruptible = true});
}

json DriverInterpreter::comm_info(std::string_view target_name) {
    if (!answers_message(about_, "comm_info_request")) {
        return Interpreter::comm_info(target_name);
    }
    const auto done = conversation_.ask(
        {{"request", "message"},
         {"type", "comm_info_request"},
         {"content", {{"target_name", target_name}}}});
    return is_ok(done) ? object_field(object_field(*done, "content"), "comms") : json::object();
}

void DriverInterpreter::receive_comm(const protocol::Message& message) {
    const Result<json> content = message.parse_content();
    if (!content || !answers_message(about_, message.header().msg_type)) {
        Interpreter::receive_comm(message);
        return;
    }
    // Ignored: a comm message has no reply, and wait_readable reports a driver at fault.
    (void)ask_message(message, content.value());
}

json DriverInterpreter::history(const json& request) {
    if (!answers_message(about_, "history_request")) {
        return history_.answer(request);
    }
    const auto done = conversation_.ask(
        {{"request", "message"}, {"type", "history_request"}, {"content", request}});
    json content = is_ok(done) ? object_field(*done, "content") : json::object();
    content["status"] = "ok";
    if (!content.contains("history")) {
        content["history"] = json::array();
    }
    return content;
}

void DriverInterpreter::receive_debug(const protocol::Message& message) {
    const Result<json> content = message.parse_content();
    if (!content || !answers_message(about_, "debug_request")) {
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
