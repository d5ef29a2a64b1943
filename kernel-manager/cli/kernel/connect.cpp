// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep connect`: how Jupyter clients attach to a session of a running server.
#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/json_field.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/cli/run/run_to_end.hpp"
#include "kernel-manager/cli/serve/state_dir.hpp"
#include "kernel-manager/http/client.hpp"
#include "kernel-manager/http/message/target.hpp"
#include "protocol/message.hpp"

#include <boost/asio/io_context.hpp>

#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

Result<http::ClientResponse> get(const http::ServerAddress& server, std::string target) {
    asio::io_context io(1);
    http::ClientRequest request;
    request.target = std::move(target);
    return run_to_end(io, http::fetch(server, std::move(request)));
}

Result<std::string> find_connection_file(const ConnectCommand& command) {
    BOOST_OUTCOME_TRY(const auto server, find_server(command.state_dir));
    BOOST_OUTCOME_TRY(
        const auto response, get(server, "/v1/sessions/" + http::encode_segment(command.session)));
    BOOST_OUTCOME_TRY(const auto body, protocol::parse_json(response.body, "the server's answer"));
    if (response.status != 200) {
        return Error(ErrorCode::kNotFound, text_field(body, "detail", "refused"));
    }
    std::string file = text_field(body, "connection_file");
    if (file.empty()) {
        return Error(ErrorCode::kUnavailable, command.session + " has no connection file");
    }
    return file;
}

}  // namespace

int connect(const ConnectCommand& command) {
    const auto file = find_connection_file(command);
    if (file.has_error()) {
        print_error(file.error());
        return kExitFailed;
    }
    print(
        "connection file: " + file.value() + "\njupyter console --existing " + file.value() + "\n");
    return kExitDone;
}

}  // namespace cellkeep::cli
