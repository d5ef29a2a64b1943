// SPDX-License-Identifier: Apache-2.0
//
// MCP's requests, given on to /mcp of a running server. Its progress comes back as it is made. A
// server that was started anew is found again, and gets a client session of its own. A request
// that may have reached a server is never sent twice. io_context thread only.
#pragma once

#include "kernel-manager/http/client.hpp"
#include "kernel-manager/mcp/answerer.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::cli {

class RemoteAnswerer : public mcp::Answerer {
 public:
    /// Where the server is now.
    using FindServer = std::function<Result<http::ServerAddress>()>;

    /// server: what `find` has found.
    RemoteAnswerer(boost::asio::io_context& io, http::ServerAddress server, FindServer find);

    boost::asio::awaitable<Answer> answer(
        std::shared_ptr<mcp::Call> call, mcp::Message message) override;
    void deliver(const mcp::Message& response) override;
    void set_outlet(const mcp::Client::Outlet& outlet) override { *outlet_ = outlet; }
    /// Ends the client session of the server, if there is one, and with it its stream.
    void end();

 private:
    /// What has come of sending a request once.
    struct Exchange {
        Answer answer;
        int status = 0;       // 0: there was no response
        std::string session;  // that it was sent in
    };

    boost::asio::awaitable<Exchange> exchange(
        std::shared_ptr<mcp::Call> call, mcp::Message message);
    /// Whether to send a request again, which was refused before anybody looked into it. session:
    /// that it was sent in.
    boost::asio::awaitable<bool> recover(int status, std::string session, bool in_session);
    /// Whether the server is another one than the one that is known.
    bool find_again();
    /// A client session in place of one that the server does not know. False if there is none.
    boost::asio::awaitable<bool> begin_anew();

    /// Tells the server that this request of the client session is no longer wanted.
    void send_cancellation(std::int64_t id);
    /// Sends a message of the client session that gets no answer.
    void send(const nlohmann::json& message);
    /// Gives on what belongs to no request. Before a subscription, unless it does so already.
    void open_stream();

    boost::asio::io_context& io_;
    /// Shared with notifications on their way, which may outlive this.
    std::shared_ptr<const http::ServerAddress> server_;
    FindServer find_;
    std::string session_;       // of the handshake; empty before it
    std::string revision_;      // the same
    nlohmann::json handshake_;  // what the client sent then
    /// While a client session is begun anew; null: none is.
    std::shared_ptr<Completion<bool>> renewal_;
    /// Whether the stream is there; the stream's own, which may outlive this.
    std::shared_ptr<bool> streaming_ = std::make_shared<bool>(false);
    std::int64_t last_id_ = 0;
    /// Shared with the stream, which may outlive this.
    std::shared_ptr<mcp::Client::Outlet> outlet_ = std::make_shared<mcp::Client::Outlet>();
};

}  // namespace cellkeep::cli
