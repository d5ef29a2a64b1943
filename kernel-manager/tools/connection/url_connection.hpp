// SPDX-License-Identifier: Apache-2.0
//
// A tool server over streamable HTTP: each message is a POST on a connection of its own, and its
// answer JSON or a stream of events. Redirects are not followed: the headers have the operator's
// credentials. io_context thread only.
#pragma once

#include "kernel-manager/egress/dial/resolver.hpp"
#include "kernel-manager/tools/config/server_entry.hpp"
#include "kernel-manager/tools/connection/server_connection.hpp"

#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>

namespace cellkeep::tools {

/// What all connections of a process share.
struct UrlParts {
    std::shared_ptr<egress::Resolver> resolver;
    std::shared_ptr<boost::asio::ssl::context> tls;  // of a client
};

class UrlConnection final : public ServerConnection {
 public:
    UrlConnection(UrlPlace place, UrlParts shared, ConnectionParts parts);
    UrlConnection(const UrlConnection&) = delete;
    UrlConnection& operator=(const UrlConnection&) = delete;
    UrlConnection(UrlConnection&&) = delete;
    UrlConnection& operator=(UrlConnection&&) = delete;
    ~UrlConnection() override;

    /// kUnavailable also for a status that is no success, unless a stateless request is refused
    /// with an error of the protocol: that is its answer. Of a session that the server has
    /// forgotten (404) the connection is lost.
    boost::asio::awaitable<RpcAnswer> request(RpcRequest request) override;
    void notify(std::string text) override;
    /// Without a session the end of the connection tells the server.
    void cancel(std::int64_t id, std::string notice) override;
    boost::asio::awaitable<void> begin_session(std::string revision, std::string notice) override;
    void close() override;

 private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace cellkeep::tools
