// SPDX-License-Identifier: Apache-2.0
//
// A ZmqSocket on an asio io_context: waits for ZeroMQ's descriptor, keeps its edge-triggered rule
// (ask again after every send and receive), and gives other handlers their turn after a bounded
// number of messages. Never closes the descriptor: it is ZeroMQ's. All calls on the io_context
// thread.
#pragma once

#include "kernel-manager/jupyter/zmq/zmq_socket.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace cellkeep::jupyter {

/// What a WatchedSocket tells its owner, from the io_context and never from inside send().
struct SocketEvents {
    /// A message came.
    std::function<void(ZmqMultipart)> on_message;
    /// A message was thrown away (kLimitExceeded), or the socket no longer works (kSystem).
    std::function<void(const Error&)> on_error;
    /// Called after each turn, for an owner that waits for room to send. May be empty.
    std::function<void()> on_turn;
};

class WatchedSocket : public std::enable_shared_from_this<WatchedSocket> {
 public:
    /// Begins to watch at once.
    static Result<std::shared_ptr<WatchedSocket>> create(
        boost::asio::io_context& io, ZmqSocket socket, SocketEvents events);
    /// Only create() can make the key.
    class Key {
        friend class WatchedSocket;
        Key() = default;
    };
    WatchedSocket(Key key, boost::asio::io_context& io, ZmqSocket socket, SocketEvents events);
    WatchedSocket(const WatchedSocket&) = delete;
    WatchedSocket& operator=(const WatchedSocket&) = delete;
    ~WatchedSocket();

    /// As ZmqSocket::send.
    Result<SendOutcome> send(
        std::span<const std::string_view> frames,
        const std::shared_ptr<const void>& keep_alive = nullptr);
    Status set_wait_for_subscribers(bool wait) { return socket_.set_wait_for_subscribers(wait); }

    /// Tells at once what has come. Not from inside an event of this socket.
    void look() { take_turn(); }

    /// Receives nothing until resume() was called as often, also when it is called by on_message.
    void pause() { ++pauses_; }
    void resume();
    /// Tells at once of what has come, paused or not: of so many messages at the most. Not from
    /// inside an event of this socket.
    void drain(std::size_t messages_max);

    /// Calls no callback afterwards. What was sent goes on being sent for the linger time once the
    /// last holder lets go.
    void close();

 private:
    void wait();
    void post_turn();
    void take_turn();
    bool receive_one();

    ZmqSocket socket_;
    SocketEvents events_;
    boost::asio::posix::stream_descriptor descriptor_;
    bool closed_ = false;
    int pauses_ = 0;
    bool waiting_ = false;
    bool turn_posted_ = false;
};

}  // namespace cellkeep::jupyter
