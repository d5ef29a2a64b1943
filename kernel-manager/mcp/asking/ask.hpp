// SPDX-License-Identifier: Apache-2.0
//
// How a tool or a prompt asks the client something: a form for its user, its model, its
// directories. A client with a session is sent a request and the answer is waited for. Since
// 2026-07-28 the result itself asks, and the client sends its request again with the answers: then
// what asked runs from its beginning, with what it wanted to be remembered in call->input.
// io_context thread only.
#pragma once

#include "kernel-manager/mcp/answerer.hpp"
#include "kernel-manager/mcp/asking/state_seal.hpp"
#include "kernel-manager/mcp/call.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::mcp {

struct InputRequest {
    std::string key;     // unique in one round
    std::string method;  // "elicitation/create", "sampling/createMessage", "roots/list"
    nlohmann::json params = nlohmann::json::object();
};

struct Asked {
    nlohmann::json answers = nlohmann::json::object();  // the client's results, by key
    /// The call has to be answered with this now: questions, or an error.
    std::optional<Answerer::Answer> instead;
};

/// Asks all of them. An answer is an object; for a form it has an action, which may be "decline" or
/// "cancel". memory: null, or what is to come back with the answers. kMissingCapability in
/// `instead` names what the client cannot be asked; the seal must outlive the call.
boost::asio::awaitable<Asked> ask_client(
    std::shared_ptr<Call> call,
    std::vector<InputRequest> requests,
    nlohmann::json memory,
    StateSeal& seal);

/// Reads inputResponses and requestState of a request into call->input. An error if they are not
/// what this server can have asked for.
std::optional<RpcError> take_input(Call& call, const Message& message, const StateSeal& seal);

/// -32021: the client does not declare what this method needs.
RpcError missing_capability(std::string_view method);

}  // namespace cellkeep::mcp
