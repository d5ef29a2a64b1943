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

#include <functional>
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

/// Why the answer to the request is none; "" if it is one.
std::string find_wrong_answer(const InputRequest& request, const nlohmann::json& answer);

/// Told how to take a question back, once it is out. What it returns is held as long as it is.
using WatchQuestion = std::function<std::shared_ptr<void>(std::function<void()> take_back)>;
/// Sends the client of a session one request and waits for the answer, which may be none
/// (find_wrong_answer). Precondition: the call has a client and a listener. `watch` may be empty.
/// kCancelled: it was taken back, the call was cancelled, or the client has gone; kTimeout;
/// kProtocol: the client refused; kUnavailable, kLimitExceeded: it takes no question now.
boost::asio::awaitable<Result<nlohmann::json>> put_question(
    std::shared_ptr<Call> call, InputRequest request, WatchQuestion watch);

/// Reads inputResponses and requestState of a request into call->input. An error if they are not
/// what this server can have asked for.
std::optional<RpcError> take_input(Call& call, const Message& message, const StateSeal& seal);

/// -32021: the client does not declare what this method needs.
RpcError missing_capability(std::string_view method);

}  // namespace cellkeep::mcp
