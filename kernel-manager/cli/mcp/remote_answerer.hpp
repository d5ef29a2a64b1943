// SPDX-License-Identifier: Apache-2.0
//
// MCP's requests, given on to /mcp of a running server. Its progress comes back as it is made.
// io_context thread only.
#pragma once

#include "kernel-manager/http/client.hpp"
#include "kernel-manager/mcp/answerer.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::cli {

class RemoteAnswerer : public mcp::Answerer {
 public:
    RemoteAnswerer(boost::asio::io_context& io, http::ServerAddress server);

    boost::asio::awaitable<Answer> answer(
        std::shared_ptr<mcp::Call> call, mcp::Message message) override;
    void deliver(const mcp::Message& response) override;
    void set_outlet(const mcp::Client::Outlet& outlet) override { *outlet_ = outlet; }
    /// Ends the client session of the server, if there is one, and with it its stream.
    void end();

 private:
    /// Tells the server that this request of the client session is no longer wanted.
    void send_cancellation(std::int64_t id);
    /// Sends a message of the client session that gets no answer.
    void send(const nlohmann::json& message);
    /// Gives on what belongs to no request. Once, before the first subscription.
    void open_stream();

    boost::asio::io_context& io_;
    /// Shared with notifications on their way, which may outlive this.
    std::shared_ptr<const http::ServerAddress> server_;
    std::string session_;   // of the handshake; empty before it
    std::string revision_;  // the same
    bool streaming_ = false;
    std::int64_t last_id_ = 0;
    /// Shared with the stream, which may outlive this.
    std::shared_ptr<mcp::Client::Outlet> outlet_ = std::make_shared<mcp::Client::Outlet>();
};

}  // namespace cellkeep::cli
