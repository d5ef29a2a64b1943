// SPDX-License-Identifier: Apache-2.0
//
// A small HTTP client for our own commands: one request on one connection, driven by the caller's
// io_context. Speaks to a Cellkeep server, so it bounds what it takes but does not defend against
// it.
#pragma once

#include "kernel-manager/http/message/headers.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

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
    Headers headers;  // besides those that every request has
};

struct ClientResponse {
    int status = 0;
    Headers headers;
    std::string body;
};

/// Takes the next bytes of a body; false: no more are wanted, and the connection closes.
using BodySink = std::function<bool(std::string_view)>;

/// kUnavailable if no server answers or if its certificate is another one; kTimeout. Any HTTP
/// status is a success here.
boost::asio::awaitable<Result<ClientResponse>> fetch(
    const ServerAddress& server, ClientRequest request);
/// The same, with the body given to `sink` as it comes. The request's timeout is for the head and
/// then for each piece of the body. kCancelled if the sink wants no more.
boost::asio::awaitable<Result<ClientResponse>> fetch_stream(
    const ServerAddress& server, ClientRequest request, BodySink sink);

}  // namespace cellkeep::http
