// SPDX-License-Identifier: Apache-2.0
//
// The spares of a server: how one is made in a place of its own, goes to a client, and gives its
// place back. Which are made, and when, is the pool's (spare_pool.hpp). Owns the pool and the
// spares' places. io_context thread only.
#pragma once

#include "kernel-manager/service/claim.hpp"
#include "kernel-manager/service/service_config.hpp"
#include "kernel-manager/service/session_entry.hpp"
#include "kernel-manager/service/session_starter.hpp"
#include "kernel-manager/service/spare_pool.hpp"
#include "kernel-manager/session/managed_session.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

class SpareSessions : public std::enable_shared_from_this<SpareSessions> {
 public:
    using SessionPtr = std::shared_ptr<ManagedSession>;
    using OnEnd = SessionStarter::OnEnd;
    struct Hooks {
        /// Admission::check(): kUnavailable when the server ends.
        std::function<Status(const SessionOptions&)> check;
        std::function<bool(std::size_t coming)> has_room;
        std::function<Result<Claim<std::uint32_t>>()> claim_slot;
        /// Spares wait for the full zygote of their kernel. They have the time.
        std::function<boost::asio::awaitable<void>(std::string kernel)> wait_for_zygote;
        /// SessionStarter::start(), of an entry that stays where it is.
        std::function<boost::asio::awaitable<Status>(SessionEntry&, SessionFactory::Order, OnEnd)>
            start;
        /// SessionStarter::adopt(), of an entry that stays where it is.
        std::function<boost::asio::awaitable<Status>(SessionEntry&, SessionOptions, OnEnd)> adopt;
        /// SessionTeardown::begin().
        std::function<void(SessionEntry, Death)> remove;
        std::function<bool()> is_shutting_down;
        std::function<void(const std::string&)> log;
        std::function<void()> on_settled;
    };

    /// always: how many of which kind there are at any time. most: SpareDemand.
    static std::shared_ptr<SpareSessions> create(
        boost::asio::io_context& io,
        const std::vector<Prespawn>& always,
        std::size_t most,
        Hooks hooks);
    SpareSessions(const SpareSessions&) = delete;
    SpareSessions& operator=(const SpareSessions&) = delete;
    ~SpareSessions() = default;

    /// Moves a spare that fits into the entry and gives it to its client. Success without a session
    /// in the entry: there is none that fits, or it failed for a reason of its own, which is
    /// logged. An error is the client's fault, or the server ends. The entry's kernel id stays the
    /// caller's unless it succeeds with a session.
    boost::asio::awaitable<Status> hand_out(
        SessionEntry& entry, SessionOptions options, OnEnd on_end);
    const std::shared_ptr<SparePool>& pool() const { return pool_; }

 private:
    explicit SpareSessions(Hooks hooks) : hooks_(std::move(hooks)) {}
    SparePool::Hooks pool_hooks();
    boost::asio::awaitable<Result<SessionPtr>> make(SessionOptions options);
    void discard(const SessionPtr& spare);
    Claim<std::uint32_t> take_slot(const SessionPtr& spare);

    const Hooks hooks_;
    std::map<std::string, Claim<std::uint32_t>> slots_;  // by session id
    std::shared_ptr<SparePool> pool_;
};

}  // namespace cellkeep::session
