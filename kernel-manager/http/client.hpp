// SPDX-License-Identifier: Apache-2.0
//
// A small HTTP client for our own commands: one request on one connection, driven by the caller's
// io_context. Speaks to a Cellkeep server, so it bounds what it takes but does not defend against
// it.
#pragma once

#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <string>

namespace cellkeep::http {

/// Where a server is: "http://127.0.0.1:8888/user/anna/" and its token.
struct ServerAddress {
    std::string host;  // numeric
    std::string port;
    std::string token;
    std::string base;  // "/user/anna": stands before every target
};

/// kInvalidArgument if the text is not http://ADDRESS:PORT[/BASE].
Result<ServerAddress> parse_server_url(const std::string& url, std::string token);

struct ClientRequest {
    std::string method = "GET";
    std::string target = "/";
    std::string body;  // JSON, or empty
    std::chrono::milliseconds timeout{60'000};
};

struct ClientResponse {
    int status = 0;
    std::string body;
};

/// kUnavailable if nobody answers, kTimeout, kProtocol. Any HTTP status is a success here.
boost::asio::awaitable<Result<ClientResponse>> fetch(
    const ServerAddress& server, ClientRequest request);

}  // namespace cellkeep::http
