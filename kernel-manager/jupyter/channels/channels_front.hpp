// SPDX-License-Identifier: Apache-2.0
//
// /api/kernels/{id}/channels: sessions as Jupyter kernels over WebSocket, in the framing
// v1.kernel.websocket.jupyter.org whenever it is offered, else in the one before it. A client that
// comes back with its session_id gets what it has not proved to have read, in order; a new one gets
// what still runs. Beyond Jupyter Server a client may say ?since=MSG_ID (the last output message
// that it has) or ?replay=all|running|none. All calls on the io_context thread.
#pragma once

#include "kernel-manager/http/router.hpp"
#include "kernel-manager/jupyter/channels/channels_hub.hpp"
#include "kernel-manager/service/service.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::jupyter {

struct ChannelsConfig {
    SubscriptionConfig subscription;
    /// Gets one line per noteworthy event, rate-limited. May be empty.
    std::function<void(const std::string&)> log;
};

class ChannelsFront : public session::SessionListener {
 public:
    /// The backend must outlive this, and this the routes.
    ChannelsFront(
        boost::asio::io_context& io, session::SessionService& backend, ChannelsConfig config = {});
    ~ChannelsFront() override = default;
    ChannelsFront(const ChannelsFront&) = delete;
    ChannelsFront& operator=(const ChannelsFront&) = delete;

    void add_to(http::Router& router);
    /// 404 for a kernel that does not exist, or not for this principal; 400 if no WebSocket is
    /// asked for or the query is wrong.
    boost::asio::awaitable<http::Response> open(http::Request& request);

    /// From now on sessions end because the server does, and the notice to their clients says so.
    void announce_shutdown() { shutting_down_ = true; }

    // --- when another program is to take the server's place; ChannelsHub's, of all sessions
    std::optional<std::string> find_work(const session::Session& session) const override;
    void part();
    void end_parting();
    std::size_t passed_bytes() const;
    /// The places are given up here.
    nlohmann::json pass_on();
    /// Of sessions that are there again. Throws json::exception for another form.
    void go_on(const nlohmann::json& passed);

    Status on_session_created(const std::shared_ptr<session::Session>& session) override;
    /// Its clients are closed with kNormal and the reason; the kernel will not come back.
    void on_session_closed(const std::string& session_id) override;

    /// Counters of one session, or null if no client has connected yet.
    const PeerLog* find_log(const std::string& session_id) const;

 private:
    std::shared_ptr<ChannelsHub> hub_of(const std::shared_ptr<session::Session>& session);

    boost::asio::io_context& io_;
    session::SessionService& backend_;
    ChannelsConfig config_;
    std::map<std::string, std::shared_ptr<ChannelsHub>> hubs_;
    bool shutting_down_ = false;
};

}  // namespace cellkeep::jupyter
