// SPDX-License-Identifier: Apache-2.0
//
// MCP over streamable HTTP: POST /mcp, one message each. A request of 2026-07-28 stands alone, and
// closing its answer cancels it. One of an earlier revision belongs to a client session
// (Mcp-Session-Id); there a notification cancels, a connection that breaks ends nothing, and GET
// /mcp is the stream of what belongs to no request. The token, the role and the Host header have
// been checked before (http/application.hpp).
#pragma once

#include "kernel-manager/http/access/origin.hpp"
#include "kernel-manager/http/application.hpp"
#include "kernel-manager/mcp/front.hpp"
#include "kernel-manager/mcp/transport/client_sessions.hpp"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace cellkeep::mcp {

struct HttpEndpointConfig {
    /// Also of requests with an Authorization header: a browser's page may have a token.
    http::OriginPolicy origins;
    bool tls = false;            // what clients see as the scheme of the server's address
    std::string base_url = "/";  // with a slash at both ends
};

class HttpEndpoint {
 public:
    /// The front must outlive this, and this the listener.
    HttpEndpoint(Front& front, HttpEndpointConfig config);
    HttpEndpoint(const HttpEndpoint&) = delete;
    HttpEndpoint& operator=(const HttpEndpoint&) = delete;
    ~HttpEndpoint() = default;
    /// The routes, and what a client without a token learns (RFC 9728).
    void add_to(http::Application& application);
    /// Ends every client session, and with it its stream.
    void stop();

    /// The client sessions and what is the front's, for another program in the server's process,
    /// and from one, before the first request. kProtocol for another form.
    nlohmann::json pass_on() const;
    Status go_on(const nlohmann::json& passed);

 private:
    using Response = boost::asio::awaitable<http::Response>;

    Response post(http::Request& request);
    Response get(http::Request& request);
    Response remove(http::Request& request);
    Response resource_metadata(http::Request& request);
    /// "http://HOST/base/", as the client sees this server.
    std::string address_of(const http::Request& request) const;
    http::Response take_notification(
        const http::Request& request, const Message& message, const Peer* stateless);
    Response answer_stateless(http::Request& request, Message message, Peer peer);
    Response answer_in_session(http::Request& request, Message message);
    Response begin_session(http::Request& request, Message message);
    Response answer_whole(
        http::Request& request,
        std::shared_ptr<Call> call,
        Message message,
        std::shared_ptr<ClientSession> session);
    http::Response answer_streamed(
        const std::shared_ptr<Call>& call, Message message, std::shared_ptr<ClientSession> session);

    Front& front_;
    HttpEndpointConfig config_;
    ClientSessions sessions_;
};

}  // namespace cellkeep::mcp
