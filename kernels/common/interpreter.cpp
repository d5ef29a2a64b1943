// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/interpreter.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <utility>

namespace cellkeep::kernels {

nlohmann::json make_error_content(std::string_view ename, std::string_view evalue) {
    return {
        {"status", "error"},
        {"ename", ename},
        {"evalue", evalue},
        {"traceback", nlohmann::json::array()}};
}

nlohmann::json Interpreter::make_failure_content(std::string_view what) const {
    nlohmann::json content = make_error_content("KernelError", what);
    content["execution_count"] = execution_count_;
    return content;
}

Status Interpreter::wait_readable(int fd) {
    if (parts_.inbox.has_held()) {
        return ok();
    }
    pollfd entry{fd, POLLIN, 0};
    while (::poll(&entry, 1, -1) < 0) {
        if (errno != EINTR) {
            return Error::from_errno(errno, "poll(kernel link)");
        }
    }
    return ok();
}

nlohmann::json Interpreter::history(const nlohmann::json& /*request*/) {
    return {{"status", "ok"}, {"history", nlohmann::json::array()}};
}

nlohmann::json Interpreter::adopt(const nlohmann::json& request) {
    const auto fail = [](const char* call) {
        return make_error_content("OSError", Error::from_errno(errno, call).message());
    };
    const nlohmann::json env = request.value("env", nlohmann::json::object());
    for (const auto& [name, value] : env.items()) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): between requests, when no other thread runs.
        if (!value.is_string() || ::setenv(name.c_str(), value.get<std::string>().c_str(), 1) < 0) {
            return fail("setenv");
        }
    }
    const std::string directory = request.value("working_directory", std::string());
    if (!directory.empty() && ::chdir(directory.c_str()) < 0) {
        return fail("chdir");
    }
    return {{"status", "ok"}};
}

nlohmann::json Interpreter::comm_info(std::string_view /*target_name*/) {
    return nlohmann::json::object();
}

void Interpreter::receive_comm(const protocol::Message& message) {
    // No comms in this language. The specification's answer to an unknown target is comm_close.
    if (message.header().msg_type != "comm_open") {
        return;
    }
    const Result<nlohmann::json> content = message.parse_content();
    if (!content || !content.value().contains("comm_id")) {
        return;
    }
    const nlohmann::json close{
        {"comm_id", content.value()["comm_id"]}, {"data", nlohmann::json::object()}};
    // Ignored: fails only when the peer is gone.
    (void)parts_.outbox.publish({.type = "comm_close", .content = protocol::dump_json(close)});
}

void Interpreter::receive_debug(const protocol::Message& message) {
    const auto send = [&](protocol::Channel channel,
                          const char* type,
                          const nlohmann::json& content) {
        const std::string text = protocol::dump_json(content);
        // Ignored: fails only when the peer is gone.
        (void)parts_.outbox.send(channel, message.header_json(), {.type = type, .content = text});
    };
    send(protocol::Channel::kIopub, "status", {{"execution_state", "busy"}});
    send(
        protocol::Channel::kControl,
        "debug_reply",
        make_error_content("NotImplementedError", "This kernel has no debugger."));
    send(protocol::Channel::kIopub, "status", {{"execution_state", "idle"}});
}

// An exception from here would leave the client without a reply.
Reply Interpreter::run(ExecuteRequest request) {
    request.store_history = request.store_history && !request.silent;
    if (request.store_history) {
        ++execution_count_;
    }
    if (request.silent) {
        // Ignored: fails only when the peer is gone. The busy before it waits for no execute_input.
        (void)parts_.outbox.flush();
    } else {
        const nlohmann::json input{{"code", request.code}, {"execution_count", execution_count_}};
        const std::string text = protocol::dump_json(input);
        // Ignored: fails only when the peer is gone, or for code that arrived in a frame and does
        // not fit one any more; the execution itself is still answered.
        if (parts_.outbox.publish({.type = "execute_input", .content = text}).has_error()) {
            (void)parts_.outbox.flush();
        }
    }
    parts_.output.begin_cell();
    Reply reply;
    try {
        reply = execute(request, execution_count_);
    } catch (const std::exception& error) {
        reply = {make_failure_content(error.what()), nlohmann::json::object()};
    }
    parts_.output.end_cell();
    reply.content["execution_count"] = execution_count_;
    return reply;
}

#if XEUS_VERSION_MAJOR >= 5
void Interpreter::execute_request_impl(
    send_reply_callback send,
    int /*xeus_count*/,
    const std::string& code,
    xeus::execute_request_config config,
    nlohmann::json user_expressions) {
    const Reply reply = run(
        {code,
         config.silent,
         config.store_history,
         std::move(user_expressions),
         config.allow_stdin});
    send(reply.content);
}
#else
nlohmann::json Interpreter::execute_request_impl(
    int /*xeus_count*/,
    const std::string& code,
    bool silent,
    bool store_history,
    nlohmann::json user_expressions,
    bool allow_stdin) {
    return run({code, silent, store_history, std::move(user_expressions), allow_stdin}).content;
}
#endif

}  // namespace cellkeep::kernels
