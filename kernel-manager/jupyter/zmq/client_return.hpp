// SPDX-License-Identifier: Apache-2.0
//
// The moments in which the ZeroMQ clients of a session that has passed to this program connect
// again, each of their sockets when its own timer says so. Until their subscriptions are back no
// request begins, because what it causes would be lost; and an answer to a client whose socket is
// not back yet waits for it. Both end. io_context thread only.
#pragma once

#include "protocol/message.hpp"

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

/// How long subscriptions are waited for, and answers wait twice that. libzmq connects again 100 to
/// 200 ms after the last try (ZMQ_RECONNECT_IVL).
inline constexpr std::chrono::milliseconds kZmqReturnPatience{1000};
/// How often it is tried whether a client takes its answer.
inline constexpr std::chrono::milliseconds kLateReplyLook{10};

struct LateReply {
    std::vector<std::string> identities;
    protocol::Message message;
    std::string signature;
};

class ClientReturn : public std::enable_shared_from_this<ClientReturn> {
 public:
    struct Hooks {
        /// All are back, or there is no more time for them. Once, never from inside begin().
        std::function<void()> on_back;
        /// Sends it, and gives it back with keep() if its client is not there.
        std::function<void(LateReply)> send;
    };

    static std::shared_ptr<ClientReturn> begin(
        boost::asio::io_context& io,
        std::size_t subscriptions,
        Hooks hooks,
        std::chrono::milliseconds patience = kZmqReturnPatience);
    class Key {
        friend class ClientReturn;
        Key() = default;
    };
    ClientReturn(
        Key key,
        boost::asio::io_context& io,
        std::size_t subscriptions,
        Hooks hooks,
        std::chrono::milliseconds patience);
    ClientReturn(const ClientReturn&) = delete;
    ClientReturn& operator=(const ClientReturn&) = delete;
    ~ClientReturn() = default;

    void note_subscription();
    /// No request begins.
    bool is_awaited() const { return awaited_; }

    /// False: there is no more time for it.
    bool may_keep() const;
    void keep(LateReply reply);
    /// An answer to this client waits already, and this one comes behind it.
    bool waits_for(const std::vector<std::string>& identities) const;
    std::size_t kept() const { return late_.size(); }

    /// Calls nothing any more.
    void stop();

 private:
    void look_soon();
    void look();

    const Hooks hooks_;
    const std::chrono::steady_clock::time_point subscribed_until_;
    const std::chrono::steady_clock::time_point replied_until_;
    std::size_t missing_;
    bool awaited_ = true;
    bool looking_ = false;
    bool stopped_ = false;
    std::deque<LateReply> late_;  // one for each request that was accepted, and those are bounded
    boost::asio::steady_timer timer_;
};

}  // namespace cellkeep::jupyter
