// SPDX-License-Identifier: Apache-2.0
//
// The sockets of a kernel that cannot begin yet. It answers what a client asks to see whether the
// kernel lives (kernel_info, heartbeat), says under the first cell why nothing runs, and keeps the
// requests for the kernel that comes. All calls on the io_context thread.
#pragma once

#include "kernel-manager/jupyter/zmq/bound_sockets.hpp"
#include "kernel-manager/kernel/server_messages.hpp"
#include "protocol/message.hpp"
#include "protocol/signer.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::jupyter {

/// How often it looks at its sockets. Nothing is in a hurry: the kernel comes in minutes.
inline constexpr std::chrono::milliseconds kPreparingTick{50};
/// Requests that wait for the kernel. More wait in the socket, up to its own bound.
inline constexpr std::size_t kHeldRequestsMax = 64;
/// Messages of one socket in one tick.
inline constexpr std::size_t kPreparingTurnMessagesMax = 64;

/// A client's request that came before the kernel. Its signature was right.
struct HeldRequest {
    std::vector<std::string> identities;
    protocol::Message message;
};

struct PreparingConfig {
    nlohmann::json kernel_info;  // what a kernel_info_reply says meanwhile
    std::string notice;          // under the first cell
    /// Called, from the io_context, when a client's shutdown_request was answered.
    std::function<void()> on_shutdown_answered;
};

class PreparingFront : public std::enable_shared_from_this<PreparingFront> {
 public:
    struct Handover {
        BoundSockets sockets;
        std::deque<HeldRequest> held;  // oldest first
    };

    /// Begins at once.
    static Result<std::shared_ptr<PreparingFront>> create(
        boost::asio::io_context& io, BoundSockets sockets, PreparingConfig config);
    PreparingFront(const PreparingFront&) = delete;
    PreparingFront& operator=(const PreparingFront&) = delete;
    ~PreparingFront() = default;

    /// Answers the cells that wait as interrupted. They are not run.
    void interrupt();
    /// Ends it. Once.
    Handover hand_over();

 private:
    PreparingFront(
        boost::asio::io_context& io,
        BoundSockets sockets,
        protocol::Signer signer,
        PreparingConfig config);
    void tick_later();
    void tick();
    void take_turn(ZmqSocket& socket, protocol::Channel channel);
    void beat();
    void answer(ZmqSocket& socket, HeldRequest request);
    void reply(ZmqSocket& socket, const HeldRequest& request, const protocol::Message& message);
    void publish(const protocol::Message& message);
    void send(
        ZmqSocket& socket,
        const std::vector<std::string>& prefix,
        const protocol::Message& message);

    boost::asio::io_context& io_;
    boost::asio::steady_timer timer_;
    BoundSockets sockets_;
    protocol::Signer signer_;
    const PreparingConfig config_;
    session::ServerMessages messages_;
    std::deque<HeldRequest> held_;
    bool noticed_ = false;
    bool ended_ = false;
};

}  // namespace cellkeep::jupyter
