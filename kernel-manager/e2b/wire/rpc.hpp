// SPDX-License-Identifier: Apache-2.0
//
// Routes of the Connect protocol (connectrpc.com/docs/protocol) within a sandbox, with JSON as the
// clients send it. Pure, but for what it adds to the router.
#pragma once

#include "kernel-manager/e2b/wire/sandbox_door.hpp"
#include "kernel-manager/http/router.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::e2b {

using RpcSession = std::shared_ptr<session::Session>;
/// What a request gets: a message, or an error.
using UnaryRpc = std::function<boost::asio::awaitable<Result<nlohmann::json>>(
    RpcSession session, nlohmann::json request)>;

/// A method "package.Service/Method" with one message each way. door must outlive the router.
void add_unary(
    http::Router& router, const SandboxDoor& door, const std::string& method, UnaryRpc answer);

/// "/e2b/{id}/49983/" and the method: a pattern of the router.
std::string rpc_pattern(const std::string& method);
/// The only message of a stream's request. A long one is parsed by another thread. Fails as
/// read_only_message() does (connect_stream.hpp).
boost::asio::awaitable<Result<nlohmann::json>> take_only_message(http::Request& request);
/// The problem of a request that is not of this media type; nullopt: it is.
std::optional<http::Response> refuse_media_type(
    const http::Request& request, std::string_view wanted);
/// The field of a kConflict that is about something that is there already.
inline constexpr const char* kTakenPath = "path";
/// As http::problem_from(); a kConflict about nothing that is there is a state that the request
/// needs.
http::Response rpc_problem(const Error& error);

/// The head of an answer that is a stream.
http::Response stream_head();
/// The interval that the client wants between signs of life.
std::chrono::seconds wanted_beat(const http::Request& request);

}  // namespace cellkeep::e2b
