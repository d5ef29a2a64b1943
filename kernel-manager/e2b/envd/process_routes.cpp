// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/envd/process_routes.hpp"

#include "kernel-manager/e2b/envd/command_stream.hpp"
#include "kernel-manager/e2b/envd/input_stream.hpp"
#include "kernel-manager/e2b/envd/process_order.hpp"
#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/fields.hpp"
#include "kernel-manager/e2b/wire/rpc.hpp"
#include "kernel-manager/http/message/problem.hpp"

#include <csignal>
#include <utility>

namespace cellkeep::e2b {

namespace {

using Answer = boost::asio::awaitable<http::Response>;
using RpcResult = Result<nlohmann::json>;
using process::Command;
using process::CommandTable;

Result<CommandTable*> table_of(session::Session& session) {
    CommandTable* table = session.commands();
    if (table == nullptr) {
        return Error(ErrorCode::kUnavailable, "Processes are not offered here.");
    }
    return table;
}

/// The command that the request's member "process" selects, and its table.
struct Selected {
    CommandTable* table = nullptr;
    std::shared_ptr<Command> command;
};

Result<Selected> select(session::Session& session, const nlohmann::json& request) {
    Selected selected;
    BOOST_OUTCOME_TRY(selected.table, table_of(session));
    Fields fields(request);
    const nlohmann::json* selector = fields.object("process");
    if (selector == nullptr) {
        return Error(ErrorCode::kInvalidArgument, "\"process\" is required.");
    }
    BOOST_OUTCOME_TRY(selected.command, select_process(*selector, *selected.table));
    return selected;
}

RpcResult nothing(Status done) {
    BOOST_OUTCOME_TRY(std::move(done));
    return nlohmann::json::object();
}

RpcResult list_processes(session::Session& session) {
    BOOST_OUTCOME_TRY(const CommandTable* table, table_of(session));
    nlohmann::json processes = nlohmann::json::array();
    for (const auto& command : table->list()) {
        if (const auto info = command->info(); !info.end) {
            processes.push_back(process_json(info));
        }
    }
    return nlohmann::json{{"processes", std::move(processes)}};
}

RpcResult send_input(session::Session& session, const nlohmann::json& request) {
    BOOST_OUTCOME_TRY(const Selected selected, select(session, request));
    Fields fields(request);
    const nlohmann::json* input = fields.object("input");
    if (input == nullptr) {
        return Error(ErrorCode::kInvalidArgument, "\"input\" is required.");
    }
    BOOST_OUTCOME_TRY(const std::string bytes, parse_input(*input));
    return nothing(selected.table->write(selected.command->id(), bytes, false));
}

RpcResult close_input(session::Session& session, const nlohmann::json& request) {
    BOOST_OUTCOME_TRY(const Selected selected, select(session, request));
    return nothing(selected.table->write(selected.command->id(), "", true));
}

RpcResult send_signal(session::Session& session, const nlohmann::json& request) {
    BOOST_OUTCOME_TRY(const Selected selected, select(session, request));
    const auto name = request.value("signal", nlohmann::json());
    int number = 0;
    if (name == "SIGNAL_SIGTERM" || name == SIGTERM) {
        number = SIGTERM;
    } else if (name == "SIGNAL_SIGKILL" || name == SIGKILL) {
        number = SIGKILL;
    } else {
        return Error(
            ErrorCode::kInvalidArgument,
            "\"signal\" must be \"SIGNAL_SIGTERM\" or \"SIGNAL_SIGKILL\".");
    }
    return nothing(selected.table->signal(selected.command->id(), number));
}

RpcResult update(session::Session& session, const nlohmann::json& request) {
    BOOST_OUTCOME_TRY(const Selected selected, select(session, request));
    Fields fields(request);
    const nlohmann::json* pty = fields.object("pty");
    if (pty == nullptr) {
        return fields.good() ? RpcResult(nlohmann::json::object()) : fields.error();
    }
    BOOST_OUTCOME_TRY(const auto size, parse_terminal_size(*pty));
    return nothing(selected.table->resize(selected.command->id(), size));
}

Answer start(http::Request& request, RpcSession session, CommandBooks books) {
    if (auto refused = refuse_media_type(request, "application/connect+json")) {
        co_return std::move(*refused);
    }
    const auto message = co_await take_only_message(request);
    if (message.has_error()) {
        co_return http::to_response(http::make_problem(400, message.error().message()));
    }
    auto order = parse_start(message.value());
    const auto table = table_of(*session);
    if (order.has_error() || table.has_error()) {
        co_return fail_stream(order.has_error() ? order.error() : table.error());
    }
    const auto started = co_await table.value()->start(std::move(order).value());
    if (started.has_error()) {
        co_return fail_stream(started.error());
    }
    if (const auto time = asked_time(request)) {
        books.deadlines.set(session, started.value(), CommandDeadlines::Clock::now() + *time);
    }
    co_return follow_command(request, started.value(), 0, books.streams.open(session->id()));
}

Answer connect(http::Request& request, RpcSession session, CommandBooks books) {
    if (auto refused = refuse_media_type(request, "application/connect+json")) {
        co_return std::move(*refused);
    }
    const auto message = co_await take_only_message(request);
    if (message.has_error()) {
        co_return http::to_response(http::make_problem(400, message.error().message()));
    }
    const auto selected = select(*session, message.value());
    if (selected.has_error()) {
        co_return fail_stream(selected.error());
    }
    const auto& command = selected.value().command;
    // As envd does it: from now on.
    co_return follow_command(
        request, command, command->output().total(), books.streams.open(session->id()));
}

UnaryRpc at_once(RpcResult (*answer)(session::Session&, const nlohmann::json&)) {
    return
        [answer](RpcSession session, nlohmann::json request) -> boost::asio::awaitable<RpcResult> {
            co_return answer(*session, request);
        };
}

}  // namespace

void add_process_rpcs(http::Router& router, const SandboxDoor& door, CommandBooks books) {
    const std::string service = "process.Process/";
    add_unary(router, door, service + "List", at_once([](session::Session& session, const auto&) {
                  return list_processes(session);
              }));
    add_unary(router, door, service + "SendInput", at_once(send_input));
    add_unary(router, door, service + "CloseStdin", at_once(close_input));
    add_unary(router, door, service + "SendSignal", at_once(send_signal));
    add_unary(router, door, service + "Update", at_once(update));
    const auto add = [&](const char* method, SandboxDoor::SandboxHandler handler) {
        http::Route route(
            http::Access::kChange,
            "POST",
            rpc_pattern(service + method),
            door.with_session(std::move(handler)));
        route.body_bytes_max = kMessageBytesMax;
        return route;
    };
    router.add(add("Start", [books](http::Request& request, RpcSession session) {
        return start(request, std::move(session), books);
    }));
    router.add(add("Connect", [books](http::Request& request, RpcSession session) {
        return connect(request, std::move(session), books);
    }));
    const auto take_input = [books](http::Request& request, RpcSession session) -> Answer {
        const std::shared_ptr<void> open = books.streams.open(session->id());
        http::Response answer = co_await take_input_stream(request, std::move(session));
        co_return answer;
    };
    http::Route input = add("StreamInput", take_input);
    input.body_mode = http::BodyMode::kStreamed;
    input.body_bytes_max = UINT64_MAX;  // each message has its own bound
    input.body_silence_max = kInputSilenceMax;
    router.add(std::move(input));
}

}  // namespace cellkeep::e2b
