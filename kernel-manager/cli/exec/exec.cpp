// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep exec` and `cellkeep shell`: a command in a session of a running server.
#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/exec/attachment.hpp"
#include "kernel-manager/cli/exec/local_terminal.hpp"
#include "kernel-manager/cli/json_field.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/cli/run/run_to_end.hpp"
#include "kernel-manager/cli/serve/state_dir.hpp"
#include "kernel-manager/http/client.hpp"
#include "kernel-manager/http/message/target.hpp"
#include "kernel-manager/http/websocket/websocket_client.hpp"
#include "protocol/json.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

nlohmann::json order_of(const ExecCommand& command) {
    nlohmann::json order = {{"argv", command.argv}};
    if (command.directory) {
        order["cwd"] = *command.directory;
    }
    if (command.terminal) {
        const auto size = local_terminal_size(STDOUT_FILENO).value_or(process::TerminalSize{});
        order["tty"] = {{"rows", size.rows}, {"cols", size.columns}};
        const char* kind = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe)
        if (kind != nullptr && *kind != '\0') {
            order["tty"]["term"] = kind;
        }
        return order;
    }
    order["when_full"] = "wait";
    if (command.input) {
        order["stdin"] = "open";
    }
    return order;
}

/// The address of the process.
asio::awaitable<Result<std::string>> start(
    const http::ServerAddress& server, const ExecCommand& command) {
    const std::string all = "/v1/sessions/" + http::encode_segment(command.session) + "/processes";
    http::ClientRequest request;
    request.method = "POST";
    request.target = all;
    request.body = protocol::dump_json(order_of(command));
    const auto answer = co_await http::fetch(server, std::move(request));
    if (answer.has_error()) {
        co_return answer.error();
    }
    const auto body = protocol::parse_json_object(answer.value().body, "the server's answer");
    if (body.has_error()) {
        co_return body.error();
    }
    if (answer.value().status != 201) {
        co_return Error(ErrorCode::kNotFound, text_field(body.value(), "detail", "refused"));
    }
    co_return all + "/" + text_field(body.value(), "id");
}

asio::awaitable<Result<std::shared_ptr<http::WebSocketClient>>> open_process(
    const http::ServerAddress& server, std::string target) {
    auto socket = co_await http::open_websocket(server, std::move(target));
    if (socket.has_error()) {
        co_return socket.error();
    }
    co_return std::shared_ptr<http::WebSocketClient>(std::move(socket).value());
}

asio::awaitable<Result<int>> run_there(asio::io_context& io, const ExecCommand& command) {
    const auto server = find_server(command.state_dir);
    if (server.has_error()) {
        co_return server.error();
    }
    const auto place = co_await start(server.value(), command);
    if (place.has_error()) {
        co_return place.error();
    }
    AttachOptions options;
    options.terminal = command.terminal;
    options.input = command.input || command.terminal;
    options.reopen = [&server, &place](std::uint64_t after) {
        return open_process(server.value(), place.value() + "/ws?after=" + std::to_string(after));
    };
    auto socket = co_await options.reopen(0);
    if (socket.has_error()) {
        co_return socket.error();
    }
    std::shared_ptr<http::WebSocketClient> shared = std::move(socket).value();
    co_return co_await attach_process(io, std::move(shared), std::move(options));
}

}  // namespace

int exec(const ExecCommand& command) {
    if (command.terminal && ::isatty(STDIN_FILENO) == 0) {
        print_error("cellkeep: a terminal is asked for, and stdin is none\n");
        return kExitUsage;
    }
    asio::io_context io(1);
    const auto code = run_to_end(io, run_there(io, command));
    if (code.has_error()) {
        print_error(code.error());
        return kExitFailed;
    }
    return code.value();
}

}  // namespace cellkeep::cli
