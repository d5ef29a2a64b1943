// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/link_server.hpp"

#include "kernels/common/request_rules.hpp"

#include <cstdio>
#include <iostream>
#include <optional>
#include <utility>

namespace cellkeep::kernels {

namespace {

using nlohmann::json;
using protocol::Channel;

/// xeus routes replies by ZeroMQ identity; the link has one peer.
const xeus::xmessage::guid_list peer{"link"};

std::string type_of(const xeus::xmessage_base& message) {
    return message.header().value("msg_type", std::string());
}

}  // namespace

// --- the loop
// --------------------------------------------------------------------------------------

void LinkServer::start_impl(xeus::xpub_message /*message*/) {
    std::clog.rdbuf(parts_.log);
    // xeus's own starting message has a date without zero padding; the specification wants one
    // "starting" per process, so later ones are swallowed in publish_impl.
    publish_status("starting");
    *parts_.outcome = serve();
}

Status LinkServer::serve() {
    Inbox& inbox = parts_.kernel.inbox;
    while (!stopped_) {
        BOOST_OUTCOME_TRY(parts_.interpreter->wait_readable(inbox.fd()));
        BOOST_OUTCOME_TRY(const std::optional<protocol::Message> message, inbox.next());
        if (!message) {
            break;  // The server closed the link: the ordinary end of a session.
        }
        dispatch(*message);
    }
    return ok();
}

void LinkServer::dispatch(const protocol::Message& message) {
    channel_ = message.channel();
    parent_ = std::string(message.header_json());
    request_type_ = message.header().msg_type;
    replied_ = false;
    switch (channel_) {
        case Channel::kShell:
            return dispatch_shell(message);
        case Channel::kControl:
            return dispatch_control(message);
        case Channel::kStdin:
            return;  // The answer to a question that was interrupted.
        case Channel::kIopub:
            return log_ignored(message);
    }
}

void LinkServer::dispatch_shell(const protocol::Message& message) {
    switch (find_shell_request(request_type_)) {
        case RequestKind::kReplied:
            return answer_request(message);
        case RequestKind::kCommInfo:
            return answer_comm_info(message);
        case RequestKind::kComm:
            return forward_comm(message);
        case RequestKind::kAdopt:       // control only
        case RequestKind::kCheckpoint:  // control only
        case RequestKind::kDebug:       // control only
        case RequestKind::kUnknown:
            publish_status("busy");
            log_ignored(message);
            return publish_status("idle");
    }
}

void LinkServer::dispatch_control(const protocol::Message& message) {
    const RequestKind kind = find_control_request(request_type_);
    if (kind == RequestKind::kAdopt) {
        return answer_adopt(message);
    }
    if (kind == RequestKind::kCheckpoint) {
        return answer_checkpoint(message);
    }
    if (kind == RequestKind::kDebug) {
        return parts_.interpreter->receive_debug(message);
    }
    if (kind == RequestKind::kUnknown) {
        publish_status("busy");
        log_ignored(message);  // JEP 91: a kernel without subshells ignores their requests.
        return publish_status("idle");
    }
    answer_request(message);
}

void LinkServer::answer_request(const protocol::Message& message) {
    const bool executes = request_type_ == "execute_request";
    // Of an execution, execute_input or a reply follows at once.
    publish_status("busy", executes ? More::kYes : More::kNo);
    Result<json> content = message.parse_content();
    Status complete = ok();
    if (content) {
        complete = complete_content(request_type_, content.value());
    }
    if (!content || !complete) {
        const Error& error = !content ? content.error() : complete.error();
        reply(parts_.interpreter->make_failure_content(error.message()), json::object());
    } else if (executes) {
        parts_.kernel.outbox.set_output_parent(parent_);
        answer_execute(std::move(content.value()));
    } else if (request_type_ == "shutdown_request") {
        answer_shutdown(content.value());
    } else {
        dispatch_to_xeus(message, std::move(content.value()));
    }
    parts_.kernel.output.flush();
    publish_status("idle");
}

/// Without xeus: see Interpreter::run().
void LinkServer::answer_execute(json content) {
    const auto is_set = [&](const char* name) { return content[name].get<bool>(); };
    Reply answer = parts_.interpreter->run(
        {.code = std::move(content["code"].get_ref<std::string&>()),
         .silent = is_set("silent"),
         .store_history = is_set("store_history"),
         .user_expressions = std::move(content["user_expressions"]),
         .allow_stdin = is_set("allow_stdin")});
    if (!answer.content.contains("status")) {
        answer.content["status"] = "ok";
    }
    parts_.kernel.output.flush();
    reply(answer.content, answer.metadata, More::kYes);  // idle follows
}

/// Without xeus, whose version 5 answers with an array.
void LinkServer::answer_shutdown(const json& content) {
    stopped_ = true;
    parts_.interpreter->shutdown_request();
    parts_.kernel.output.flush();
    reply({{"status", "ok"}, {"restart", content["restart"]}}, json::object());
}

void LinkServer::dispatch_to_xeus(const protocol::Message& message, json content) {
    Result<json> header = protocol::parse_json(message.header_json(), "header");
    if (!header) {
        reply(parts_.interpreter->make_failure_content(header.error().message()), json::object());
        return;
    }
    xeus::xmessage request(
        peer, std::move(header.value()), json::object(), json::object(), std::move(content), {});
    if (channel_ == Channel::kControl) {
        notify_control_listener(std::move(request));
    } else {
        notify_shell_listener(std::move(request));
    }
    if (!replied_) {
        // xeus swallowed an exception. The client must still get an answer.
        reply(
            parts_.interpreter->make_failure_content(
                "the kernel failed to answer " + request_type_),
            json::object());
    }
}

void LinkServer::answer_comm_info(const protocol::Message& message) {
    publish_status("busy");
    std::string target;
    if (const Result<json> content = message.parse_content(); content) {
        const auto found = content.value().find("target_name");
        if (found != content.value().end() && found->is_string()) {
            target = found->get<std::string>();
        }
    }
    reply({{"status", "ok"}, {"comms", parts_.interpreter->comm_info(target)}}, json::object());
    publish_status("idle");
}

void LinkServer::answer_adopt(const protocol::Message& message) {
    const Result<json> content = message.parse_content();
    reply(
        content ? parts_.interpreter->adopt(content.value())
                : make_error_content("ValueError", content.error().message()),
        json::object());
}

void LinkServer::answer_checkpoint(const protocol::Message& message) {
    UniqueFd socket = parts_.kernel.link.take_descriptor();
    const Result<json> content = message.parse_content();
    if (!content || !socket) {
        reply(make_error_content("ValueError", "no descriptor, or no content"), json::object());
        return;
    }
    const std::optional<json> answer =
        parts_.checkpoint->make(*parts_.interpreter, content.value(), std::move(socket));
    if (answer) {
        reply(*answer, json::object());
    }
    // Else this process goes on from the copy: the request was another one's.
}

void LinkServer::forward_comm(const protocol::Message& message) {
    publish_status("busy");
    const std::string before = parts_.kernel.outbox.output_parent();
    parts_.kernel.outbox.set_output_parent(parent_);
    // A handler is user code: what it prints must not wait for its end.
    parts_.kernel.output.begin_cell();
    parts_.interpreter->receive_comm(message);
    parts_.kernel.output.end_cell();
    publish_status("idle");
    parts_.kernel.outbox.set_output_parent(before);
}

// --- what goes out
// ---------------------------------------------------------------------------------

void LinkServer::reply(const json& content, const json& metadata, More more) {
    replied_ = true;
    const std::string type = reply_type(request_type_);
    const std::string metadata_text = protocol::dump_json(metadata);
    const std::string text = protocol::dump_json(content);
    const Result<std::string> sent = parts_.kernel.outbox.send(
        channel_, parent_, {.type = type, .content = text, .metadata = metadata_text}, more);
    if (sent || sent.error().code() != ErrorCode::kLimitExceeded) {
        return;  // Ignored: the peer is gone, and the loop will see that next.
    }
    const std::string failure =
        protocol::dump_json(parts_.interpreter->make_failure_content(sent.error().message()));
    (void)parts_.kernel.outbox.send(channel_, parent_, {.type = type, .content = failure});
}

void LinkServer::publish_status(std::string_view state, More more) {
    const std::string text = R"({"execution_state":")" + std::string(state) + R"("})";
    // Ignored: fails only when the peer is gone, and the loop will see that next.
    (void)parts_.kernel.outbox.send(
        Channel::kIopub, parent_, {.type = "status", .content = text}, more);
}

void LinkServer::send_shell_impl(xeus::xmessage message) {
    json content = message.content();
    const json& metadata = message.metadata();
    const std::string type = type_of(message);
    if (type == "kernel_info_reply") {
        // xeus writes the version that it was made for.
        content["protocol_version"] = protocol::kProtocolVersion;
    } else if (!content.is_object()) {
        content = make_error_content("ValueError", "hist_access_type is not range, tail or search");
    }
    if (type == "interrupt_reply" || !content.contains("status")) {
        content["status"] = "ok";
    }
    parts_.kernel.output.flush();
    reply(content, metadata);
}

void LinkServer::send_control_impl(xeus::xmessage message) {
    send_shell_impl(std::move(message));  // reply() uses the request's channel.
}

void LinkServer::send_stdin_impl(xeus::xmessage message) {
    json content = message.content();
    if (const auto old_name = content.find("pwd"); old_name != content.end()) {
        content["password"] = *old_name;
        content.erase("pwd");
    }
    const std::string type = type_of(message);
    const std::string text = protocol::dump_json(content);
    // Ignored: fails only when the peer is gone, and the loop will see that next.
    (void)parts_.kernel.outbox.send(Channel::kStdin, parent_, {.type = type, .content = text});
}

void LinkServer::publish_impl(xeus::xpub_message message, xeus::channel /*channel*/) {
    const std::string type = type_of(message);
    // status: sent by us, so that idle comes after the last reply. execute_input: sent by
    // Interpreter with the right count. The last one is not in the specification.
    if (type == "status" || type == "execute_input" || type == "interrupt") {
        return;
    }
    const std::string content = protocol::dump_json(message.content());
    const std::string metadata = protocol::dump_json(message.metadata());
    Payload payload{.type = type, .content = content, .metadata = metadata, .buffers = {}};
    for (const xeus::binary_buffer& buffer : message.buffers()) {
        payload.buffers.emplace_back(buffer.data(), buffer.size());
    }
    parts_.kernel.output.flush();
    if (const Status sent = parts_.kernel.outbox.publish(payload); !sent) {
        (void)std::fprintf(stderr, "%s\n", sent.error().message().c_str());
    }
}

void LinkServer::abort_queue_impl(const listener& /*abort*/, long /*polling_interval*/) {
    // Nothing waits in this process: the session service holds the queue and aborts there.
}

void LinkServer::log_ignored(const protocol::Message& message) const {
    // fd 2 is the kernel's log; the server reads it.
    (void)std::fprintf(
        stderr,
        "cellkeep kernel: ignored a message of unknown type %s on %s\n",
        protocol::dump_json(message.header().msg_type).c_str(),
        std::string(protocol::to_string(message.channel())).c_str());
}

std::unique_ptr<xeus::xserver> make_link_server(
    xeus::xcontext& context,
    const xeus::xconfiguration& /*config*/,
    json::error_handler_t /*error_handler*/) {
    return std::make_unique<LinkServer>(context.get_wrapped_context<ServerParts>());
}

}  // namespace cellkeep::kernels
