// SPDX-License-Identifier: Apache-2.0
//
// Starts sessions: makes each, waits until its kernel has answered, and removes it if that fails.
// Knows those that are on their way, so that the server's end reaches them too.
// io_context thread only.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/service/session_entry.hpp"
#include "kernel-manager/service/session_factory.hpp"
#include "kernel-manager/session/managed_session.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

class SessionStarter : public std::enable_shared_from_this<SessionStarter> {
 public:
    using SessionPtr = std::shared_ptr<ManagedSession>;
    using OnEnd = std::function<void(const std::string& session_id, Death)>;
    struct Hooks {
        /// SessionFactory::make().
        std::function<boost::asio::awaitable<Result<SessionPtr>>(SessionFactory::Order)> make;
        /// Whether a session whose sandbox is made has started.
        std::function<void(const ManagedSession&, bool started)> note_start;
        /// Removes a session that failed. SessionTeardown::begin().
        std::function<void(SessionEntry, Death)> remove;
    };

    static std::shared_ptr<SessionStarter> create(boost::asio::io_context& io, Hooks hooks);
    SessionStarter(const SessionStarter&) = delete;
    SessionStarter& operator=(const SessionStarter&) = delete;
    ~SessionStarter() = default;

    /// Makes and starts the session in the entry's place; slot, kernel id and on_end_requested of
    /// the order are filled in here. on_end is called in a turn of the loop of its own when the
    /// session asks for its end. After a failure the entry is empty: its session is being removed.
    boost::asio::awaitable<Status> start(
        SessionEntry& entry, SessionFactory::Order order, OnEnd on_end);
    /// Starts the entry's session, a spare, for its client. After a failure its session and number
    /// are being removed; the entry keeps its kernel id.
    boost::asio::awaitable<Status> adopt(SessionEntry& entry, SessionOptions options, OnEnd on_end);
    /// The server ends: closes what is on its way.
    void stop(Death reason);
    /// The same call in a turn of the loop of its own.
    OnEnd later(OnEnd on_end) const;

 private:
    /// While it lives, stop() reaches the session.
    class OnItsWay;

    SessionStarter(boost::asio::io_context& io, Hooks hooks) : io_(io), hooks_(std::move(hooks)) {}

    boost::asio::io_context& io_;
    const Hooks hooks_;
    std::vector<std::weak_ptr<ManagedSession>> on_their_way_;
};

}  // namespace cellkeep::session
