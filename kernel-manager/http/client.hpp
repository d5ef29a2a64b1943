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

/// Where a server is, and its token. It is reached through `socket_path` if that is set, else at
/// `host` and `port`.
struct ServerAddress {
    std::string host;  // numeric
    std::string port;
    std::string socket_path;  // of a Unix socket
    std::string token;
    std::string base;  // "/user/anna": stands before every target
    bool tls = false;
    /// SHA-256 of the server's certificate (DER), as lower-case hexadecimal digits. With `tls`, a
    /// server that shows another certificate does not get the request.
    std::string certificate_sha256;
};

/// kInvalidArgument if the text is none of http://ADDRESS:PORT[/BASE], https://ADDRESS:PORT[/BASE]
/// and unix:/PATH.
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

/// kUnavailable if no server answers or if its certificate is another one; kTimeout. Any HTTP
/// status is a success here.
boost::asio::awaitable<Result<ClientResponse>> fetch(
    const ServerAddress& server, ClientRequest request);

}  // namespace cellkeep::http
