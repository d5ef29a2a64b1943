// SPDX-License-Identifier: Apache-2.0
//
// One WebSocket of a client at /api/kernels/{id}/channels: sends what the client's subscription has
// for it and submits what the client asks. One bad message is counted and, where possible,
// answered; only broken framing ends the socket. All calls on the io_context thread.
#pragma once

#include "kernel-manager/http/websocket/websocket.hpp"
#include "kernel-manager/jupyter/channels/channels_framing.hpp"
#include "kernel-manager/jupyter/channels/channels_subscription.hpp"
#include "kernel-manager/jupyter/peer_log.hpp"
#include "kernel-manager/kernel/server_messages.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/work_thread.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace cellkeep::jupyter {

/// How a client wants its messages.
struct ChannelsStyle {
    Framing framing = Framing::kLegacy;
    OutgoingFrame::Buffers buffers = OutgoingFrame::Buffers::kSend;
};

class ChannelsConnection : public std::enable_shared_from_this<ChannelsConnection> {
 public:
    /// work_thread: reads long messages; null: they are read at once.
    ChannelsConnection(
        boost::asio::io_context& io,
        std::shared_ptr<http::WebSocket> socket,
        std::shared_ptr<ChannelsSubscription> subscription,
        std::shared_ptr<session::Session> session,
        std::shared_ptr<PeerLog> log,
        ChannelsStyle style,
        WorkThread* work_thread = nullptr);
    ~ChannelsConnection() = default;
    ChannelsConnection(const ChannelsConnection&) = delete;
    ChannelsConnection& operator=(const ChannelsConnection&) = delete;

    /// Until the socket is closed. The subscription is free for the next one when this returns.
    boost::asio::awaitable<void> run();
    /// Makes room for the same client's next socket: sends nothing more, waits until the client has
    /// proved what it has read, but not longer than patience, and stops.
    boost::asio::awaitable<void> retire(std::chrono::milliseconds patience);
    /// Leaves the subscription at once and closes.
    void stop(http::CloseCode code, std::string reason);
    /// Asks the client to connect again (kServiceRestart): sends nothing more, and takes what it
    /// still says before it closes. Calls on_asked for each such message.
    void part(std::function<void()> on_asked);
    bool is_parting() const { return parting_; }
    /// No message of the client is being read, and it has at most so many bytes to get or to prove.
    bool is_at_rest(std::size_t unread_bytes_max) const;
    /// Closes when everything has been sent.
    void finish(http::CloseCode code, std::string reason);

 private:
    boost::asio::awaitable<void> send_all();
    boost::asio::awaitable<Status> send_one(protocol::Message message);
    boost::asio::awaitable<void> wait_for_room();
    boost::asio::awaitable<void> take(http::WebSocketMessage received);
    void refuse(const DecodedRequest& request);
    void welcome();
    std::string sender() const;

    std::shared_ptr<http::WebSocket> socket_;
    std::shared_ptr<ChannelsSubscription> subscription_;
    std::shared_ptr<session::Session> session_;
    std::shared_ptr<PeerLog> log_;
    ChannelsStyle style_;
    WorkThread* work_thread_;
    boost::asio::steady_timer wake_;  // never expire; cancelled to wake who waits
    boost::asio::steady_timer room_;
    boost::asio::steady_timer sent_all_;
    boost::asio::steady_timer settle_;  // the patience of retire(), cut short when all is proved
    std::uint64_t attachment_ = 0;
    bool stopped_ = false;
    bool retiring_ = false;
    bool sender_done_ = false;
    bool finishing_ = false;
    bool parting_ = false;
    bool taking_ = false;  // a message that came
    std::function<void()> on_asked_;
    http::CloseCode code_ = http::CloseCode::kNormal;
    std::string reason_;
};

}  // namespace cellkeep::jupyter
