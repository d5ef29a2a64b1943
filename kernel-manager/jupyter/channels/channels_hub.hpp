// SPDX-License-Identifier: Apache-2.0
//
// The WebSocket clients of one session: who is connected, who left and may come back. A client is
// known by its session_id; of two sockets with the same one the newest wins. Alive while any of its
// sockets is. All calls on the io_context thread.
#pragma once

#include "kernel-manager/jupyter/channels/channels_connection.hpp"
#include "kernel-manager/jupyter/channels/channels_subscription.hpp"
#include "kernel-manager/jupyter/peer_log.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::jupyter {

/// What of the past a client gets.
enum class Replay {
    kPlace,    // from its place, if it has one; else as kRunning
    kRunning,  // what has begun and is not over
    kAll,      // what is kept
    kNone,
};

/// A client that has more than this to get, or to prove that it has read it, is not asked to
/// connect again for another program: what waits for it has to pass (kPassedPlaceBytesMax).
inline constexpr std::size_t kPartingUnreadBytesMax = 64U << 10U;

struct ChannelsClient {
    /// Who may take which place; empty: the place ends with the socket.
    std::string key;
    std::string session_id;  // as its requests' headers name it; empty: it does not say
    Replay replay = Replay::kPlace;
    /// The msg_id of the last output message that the client has; goes before `replay`.
    std::optional<std::string> since;
    ChannelsStyle style;
    /// Reads its long messages; null: they are read at once.
    WorkThread* work_thread = nullptr;
};

class ChannelsHub : public std::enable_shared_from_this<ChannelsHub> {
 public:
    ChannelsHub(
        boost::asio::io_context& io,
        std::shared_ptr<session::Session> session,
        PeerLog::Write write,
        SubscriptionConfig config);
    ~ChannelsHub() = default;
    ChannelsHub(const ChannelsHub&) = delete;
    ChannelsHub& operator=(const ChannelsHub&) = delete;

    /// One client, until its socket is closed.
    static boost::asio::awaitable<void> serve(
        std::shared_ptr<ChannelsHub> hub,
        std::shared_ptr<http::WebSocket> socket,
        ChannelsClient client);
    /// The session is over: everyone gets what is on its way, a last status and this close.
    void close(http::CloseCode code, const std::string& reason);

    // --- when another program is to take the server's place
    /// What is under way for a client, for people; nullopt: nothing that could not be left.
    std::optional<std::string> find_work() const;
    /// Asks all clients to connect again. What they say meanwhile counts as work until
    /// end_parting(). Precondition: each has a name; others are no returning clients.
    void part();
    void end_parting() { parting_ = asked_ = false; }
    /// The places of clients that are away; null: there are none.
    nlohmann::json pass_on() const;
    /// About what pass_on() gives when all clients have left, in bytes.
    std::size_t passed_bytes() const;
    void go_on(const nlohmann::json& places);

    /// Why the session ended, for people.
    std::string close_reason() const;
    const PeerLog& log() const { return *log_; }
    std::size_t places() const { return places_.size(); }

 private:
    struct Place {
        std::shared_ptr<ChannelsSubscription> subscription;
        std::shared_ptr<ChannelsConnection> connection;  // null: the client is away
        std::uint64_t left = 0;                          // order of departure
    };

    /// Who has the place now, or null.
    std::shared_ptr<ChannelsConnection> connected(const std::string& key) const;
    /// Takes the place, which is free; null if the session is over.
    std::shared_ptr<ChannelsConnection> enter(
        const std::string& key,
        std::shared_ptr<http::WebSocket> socket,
        const ChannelsClient& client);
    void begin(ChannelsSubscription& subscription, const ChannelsClient& client, bool known) const;
    void ask_again(ChannelsSubscription& subscription, const ChannelsClient& client) const;
    void leave(const std::string& key, const std::shared_ptr<ChannelsConnection>& connection);
    void forget_oldest();
    void note_dropped(std::size_t answers) const;

    boost::asio::io_context& io_;
    std::shared_ptr<session::Session> session_;
    std::shared_ptr<PeerLog> log_;
    SubscriptionConfig config_;
    std::map<std::string, Place> places_;
    std::uint64_t departures_ = 0;
    std::uint64_t unnamed_ = 0;
    std::size_t arriving_ = 0;  // clients that wait for their place
    bool parting_ = false;
    bool asked_ = false;  // while they part
    bool closed_ = false;
    http::CloseCode code_ = http::CloseCode::kNormal;
    std::string reason_;
};

}  // namespace cellkeep::jupyter
