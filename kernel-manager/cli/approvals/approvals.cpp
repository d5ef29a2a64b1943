// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/approvals/approvals.hpp"

#include "kernel-manager/cli/approvals/approval_list.hpp"
#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/json_field.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/cli/run/run_to_end.hpp"
#include "kernel-manager/cli/serve/state_dir.hpp"
#include "kernel-manager/http/client.hpp"
#include "kernel-manager/http/message/target.hpp"
#include "protocol/json.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

constexpr const char* kApprovalsPath = "/v1/approvals";

Result<http::ClientResponse> ask_server(
    const ApprovalsCommand& command, http::ClientRequest request) {
    BOOST_OUTCOME_TRY(const http::ServerAddress server, find_server(command.state_dir));
    asio::io_context io(1);
    return run_to_end(io, http::fetch(server, std::move(request)));
}

/// What the server says instead of what was asked for.
Error refusal_of(const http::ClientResponse& response) {
    const auto problem = protocol::parse_json_object(response.body, "the server's answer");
    const nlohmann::json body = problem.has_value() ? problem.value() : nlohmann::json::object();
    const std::string title =
        text_field(body, "title", "the server answered " + std::to_string(response.status));
    return {ErrorCode::kUnavailable, text_field(body, "detail", title)};
}

Result<nlohmann::json> fetch_list(const ApprovalsCommand& command) {
    http::ClientRequest request;
    request.target = kApprovalsPath;
    BOOST_OUTCOME_TRY(const auto response, ask_server(command, std::move(request)));
    if (response.status != 200) {
        return refusal_of(response);
    }
    return protocol::parse_json_object(response.body, "the server's answer");
}

Status send_decision(const ApprovalsCommand& command, const char* decision) {
    http::ClientRequest request;
    request.method = "POST";
    request.target = std::string(kApprovalsPath) + "/" + http::encode_segment(command.id);
    request.body = protocol::dump_json({{"decision", decision}});
    BOOST_OUTCOME_TRY(const auto response, ask_server(command, std::move(request)));
    if (response.status != 204) {
        return refusal_of(response);
    }
    return ok();
}

int decide(const ApprovalsCommand& command, const char* decision) {
    const Status sent = send_decision(command, decision);
    if (sent.has_error()) {
        print_error(sent.error());
        return kExitFailed;
    }
    return kExitDone;
}

}  // namespace

int approvals_list(const ApprovalsCommand& command) {
    const auto list = fetch_list(command);
    if (list.has_error()) {
        print_error(list.error());
        return kExitFailed;
    }
    print(
        command.as_json ? array_field(list.value(), "approvals").dump(2) + "\n"
                        : approval_list(list.value()));
    return kExitDone;
}

int approvals_allow(const ApprovalsCommand& command) {
    return decide(command, "approve");
}

int approvals_deny(const ApprovalsCommand& command) {
    return decide(command, "deny");
}

}  // namespace cellkeep::cli
