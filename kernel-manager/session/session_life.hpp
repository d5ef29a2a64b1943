// SPDX-License-Identifier: Apache-2.0
//
// How long a session lives: its age, its activity and its clients, and the end of one that is idle
// or old. The rules are a pure function (culler.hpp); this holds what they look at, and the alarm.
// io_context thread only.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/session/activity.hpp"
#include "kernel-manager/session/connected_clients.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/support/alarm.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <optional>

namespace cellkeep::session {

class SessionLife {
 public:
    /// None is empty.
    struct Hooks {
        /// A request runs or waits.
        std::function<bool()> is_busy;
        /// Every interpreter is dead for good.
        std::function<bool()> is_dead;
        /// A spare, which is kept until it goes to a client.
        std::function<bool()> is_spare;
        /// The session is idle or old. May be called more than once.
        std::function<void(const Death&)> end;
    };

    /// The options stay where they are, and may change.
    SessionLife(
        boost::asio::io_context& io,
        const SessionOptions& options,
        Hooks hooks,
        KeepAlive keep_session);
    SessionLife(const SessionLife&) = delete;
    SessionLife& operator=(const SessionLife&) = delete;
    ~SessionLife() = default;

    /// A spare goes to a client: its age and its activity count from now.
    void begin_anew();
    /// Its age, activity and last client, for another program in this process, and from one.
    struct Passed {
        std::chrono::system_clock::time_point created_at;
        std::chrono::steady_clock::time_point created_steady;
        std::chrono::steady_clock::time_point last_activity;
        std::optional<std::chrono::steady_clock::time_point> client_left_at;
    };
    Passed pass_on() const {
        return {created_at_, created_steady_, activity_.last(), clients_.left_at()};
    }
    void go_on(const Passed& passed);
    /// Something counts as activity.
    void touch() { activity_.touch(std::chrono::steady_clock::now()); }
    /// Applies the rules: ends the session, or sets the alarm for the next look.
    void review();
    /// Something ended that may have kept the session: review(), if anything had.
    void review_if_kept();
    /// The session has ended: nothing is reviewed any more.
    void stop();

    Activity& activity() { return activity_; }
    const ConnectedClients& clients() const { return clients_; }
    std::shared_ptr<void> connect_client() { return clients_.add(); }
    std::shared_ptr<void> connect_returning_client() { return clients_.add_returning(); }
    std::chrono::system_clock::time_point created_at() const { return created_at_; }
    std::chrono::steady_clock::time_point created_steady() const { return created_steady_; }
    std::chrono::system_clock::time_point last_activity() const;

 private:
    const SessionOptions& options_;
    const Hooks hooks_;
    std::chrono::system_clock::time_point created_at_;
    std::chrono::steady_clock::time_point created_steady_;
    Activity activity_;
    ConnectedClients clients_;
    Alarm alarm_;
    bool kept_ = false;  // by a request: its end brings review_if_kept()
    bool stopped_ = false;
};

}  // namespace cellkeep::session
