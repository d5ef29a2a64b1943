// SPDX-License-Identifier: Apache-2.0
//
// The iopub socket of one session: publishes output to every subscriber and loses nothing while a
// subscriber is slow: what does not fit waits here, congested() is true, and the session stops
// reading its kernel. A subscriber that does not read for stall_max is left out (until it has read
// half of what waits for it) so that the others go on. Greets each subscription with iopub_welcome
// (JEP 65). Large messages are signed in slices, limits::kSignTurnBytesMax in one turn of the loop.
// All calls on the io_context thread.
#pragma once

#include "kernel-manager/jupyter/peer_log.hpp"
#include "kernel-manager/jupyter/zmq/watched_socket.hpp"
#include "protocol/message.hpp"
#include "protocol/signer.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace cellkeep::jupyter {

/// What is kept of one session's output for subscribers that are late to come back.
inline constexpr std::size_t kKeptOutputBytesMax = 1U << 20U;

struct IopubConfig {
    std::string session_id;  // sender of iopub_welcome
    std::string kernel_id;   // part of the topics: "kernel.<id>.<msg_type>", as ipykernel has them
    std::chrono::milliseconds stall_max{0};
    /// Called, from the io_context, when what waited has been sent.
    std::function<void()> on_drained;
    /// Called, from the io_context, for each subscription that comes. May be empty.
    std::function<void()> on_subscription;
    /// Called, from the io_context, when the first subscriber has come and when the last has left,
    /// whether it said so or its connection was lost. May be empty.
    std::function<void(bool anyone)> on_subscribers;
};

class IopubPublisher : public std::enable_shared_from_this<IopubPublisher> {
 public:
    /// The signer and the log must outlive the publisher. The socket is bound.
    static Result<std::shared_ptr<IopubPublisher>> create(
        boost::asio::io_context& io,
        ZmqSocket socket,
        const protocol::Signer& signer,
        PeerLog& log,
        IopubConfig config);

    class Key {
        friend class IopubPublisher;
        Key() = default;
    };
    IopubPublisher(
        Key key,
        boost::asio::io_context& io,
        const protocol::Signer& signer,
        PeerLog& log,
        IopubConfig config);
    IopubPublisher(const IopubPublisher&) = delete;
    IopubPublisher& operator=(const IopubPublisher&) = delete;
    ~IopubPublisher() = default;

    /// Signs and sends nothing until a client has subscribed.
    void publish(const protocol::Message& message);
    /// Call it before a client's request is handled: its subscription may have come and not been
    /// read yet, and the client must get what its request causes.
    void look_for_subscribers();
    /// Something waits here. Stays so for at most stall_max per slow subscriber, or until
    /// release().
    bool congested() const { return held_back_ || (!keeping_ && !waiting_.empty()); }
    /// Sends nothing until release(): subscribers are about to come back. If none is there by then,
    /// output is kept for the first one, as long as for one that is slow, the newest
    /// kKeptOutputBytesMax of it: a client of libzmq subscribes again when it looks at its socket.
    void hold_back();
    void release();
    bool is_waiting() const { return held_back_ || !waiting_.empty(); }
    /// How many subscriptions there are, or a few more: the end of one is known if it was the last
    /// on its topic.
    std::size_t subscriptions() const;
    /// Hands everything that waits to ZeroMQ, leaving out full subscribers, and stops.
    void close();

 private:
    struct Waiting {
        protocol::Message message;
        std::string topic;
        std::string signature;
        /// Not null: a large message whose signature is still being made.
        std::unique_ptr<protocol::Signing> signing;
    };
    void note_subscription(std::string_view frame);
    void end_keeping();
    bool sign_first();
    void greet(std::string_view frame);
    void enqueue(protocol::Message message, std::string topic);
    bool send_first();
    void flush();
    void step_over();
    void drop_first(std::string_view why);
    void tick_in(std::chrono::milliseconds delay);
    void go_on_soon();
    void on_tick();

    const protocol::Signer& signer_;
    PeerLog& log_;
    IopubConfig config_;
    std::shared_ptr<WatchedSocket> socket_;
    boost::asio::steady_timer timer_;
    /// With at least one subscriber each. XPUB reports every subscription, but an end only when no
    /// subscriber is left on the topic (zmq_setsockopt(3), ZMQ_XPUB_VERBOSE): a count would not
    /// hold.
    std::map<std::string, std::size_t, std::less<>> topics_;
    std::deque<Waiting> waiting_;
    std::size_t waiting_bytes_ = 0;
    std::chrono::steady_clock::time_point progress_;
    bool ticking_ = false;
    bool owes_drained_ = false;
    bool closed_ = false;
    bool held_back_ = false;
    bool keeping_ = false;
    bool subscribed_ = false;  // a client has, at some time
    /// Bytes that ZeroMQ still holds by reference; its thread counts them down.
    std::shared_ptr<std::atomic<std::size_t>> unsent_bytes_;
};

}  // namespace cellkeep::jupyter
