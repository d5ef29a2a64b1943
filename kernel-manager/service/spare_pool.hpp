// SPDX-License-Identifier: Apache-2.0
//
// Sessions made in advance, without a client. A client that asks for one that fits gets it without
// waiting for an interpreter. Makes a few at a time in the background, replaces what was handed out
// or died, and backs off when that fails, so that a broken installation costs no hot loop. How many
// of what kind follows what is asked for (SpareDemand). Owns the spares; how one is made and let go
// of is the Service's. io_context thread only.
#pragma once

#include "kernel-manager/service/spare_demand.hpp"
#include "kernel-manager/session/managed_session.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "kernel-manager/warm/retry_delay.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

/// After a failure the next spare is tried this much later, then twice that, and so on.
inline constexpr std::chrono::milliseconds kSpareRetryFirst{1000};
inline constexpr std::chrono::milliseconds kSpareRetryMost{60'000};

/// How many are made at a time: more would only hold up those who ask for something else.
inline constexpr std::size_t kSparesMadeAtOnce = 3;

/// Spares are made while no client waits for a session, so that clients do not wait for spares; but
/// no longer than this after the first of a crowd has come.
inline constexpr std::chrono::milliseconds kSpareDeferralMost{1000};

class SparePool : public std::enable_shared_from_this<SparePool> {
 public:
    using Spare = std::shared_ptr<ManagedSession>;
    using Kind = SpareDemand::Kind;
    /// While it lives, somebody is getting a session: their wish counts as demand. What is missing
    /// afterwards is made then.
    class Asking {
     public:
        Asking(std::shared_ptr<SparePool> pool, const SessionOptions& asked);
        Asking(const Asking&) = delete;
        Asking& operator=(const Asking&) = delete;
        ~Asking();

     private:
        std::shared_ptr<SparePool> pool_;
    };
    struct Hooks {
        /// One spare, ready; an error if it cannot be made now.
        std::function<boost::asio::awaitable<Result<Spare>>(SessionOptions)> make;
        /// Ends one and gives its place back.
        std::function<void(const Spare&)> discard;
        /// Whether there is a place for one more besides those that are being made, which may
        /// have theirs already, and a place for somebody's session.
        std::function<bool(std::size_t coming)> has_room;
        std::function<void(const std::string&)> log;
        /// There are as many as are wanted, or no more can be had now. May be empty.
        std::function<void()> on_settled = nullptr;
    };

    static std::shared_ptr<SparePool> create(
        boost::asio::io_context& io, SpareDemand demand, Hooks hooks);
    SparePool(const SparePool&) = delete;
    SparePool& operator=(const SparePool&) = delete;
    ~SparePool() = default;

    /// Lets go of what is no longer wanted and begins to make what is missing, in the background;
    /// nothing if it is busy with that, or others are being served.
    void fill();
    /// A spare that fits, which is the caller's from now on; null if there is none.
    Spare take(const SessionOptions& asked);
    /// Lets one go to make room, of those that demand alone has made if there are any; false if
    /// there is none.
    bool give_way();
    /// Spares of before are no longer wanted, those that are being made included. Makes others.
    void renew();
    /// One has died.
    void drop(const std::string& session_id);
    /// Waits for the next spare of those being made, if any is: whether it is ready.
    boost::asio::awaitable<bool> wait_for_making();
    /// No more spares; those that are ready are let go.
    void stop();

    std::size_t size() const { return ready_.size(); }
    bool is_making() const { return !being_made_.empty(); }

 private:
    SparePool(boost::asio::io_context& io, SpareDemand demand, Hooks hooks);
    /// A kind of which there are not enough, those being made counted.
    std::optional<SessionOptions> missing() const;
    std::size_t count_ready(const SessionOptions& kind) const;
    /// Lets go of what is beyond the demand.
    void drop_unwanted();
    void watch_demand();
    /// Sessions that clients wait for come first, for kSpareDeferralMost at most.
    bool should_defer() const;
    boost::asio::awaitable<void> make_one(SessionOptions options);
    void announce_made(bool ready);
    void fill_later();
    void announce_settled() const;

    boost::asio::io_context& io_;
    SpareDemand demand_;
    Hooks hooks_;
    std::vector<Spare> ready_;
    std::vector<SessionOptions> being_made_;
    std::uint64_t generation_ = 0;            // of the spares that are wanted
    std::shared_ptr<Completion<bool>> made_;  // set when the next one is ready or has failed
    boost::asio::steady_timer retry_timer_;
    RetryDelay retry_delay_{kSpareRetryFirst, kSpareRetryMost};
    bool waiting_ = false;                                // for retry_timer_
    boost::asio::steady_timer demand_timer_;              // goes off when demand declines
    std::size_t asking_ = 0;                              // how many Asking live
    std::chrono::steady_clock::time_point asking_since_;  // of the first of them
    bool stopped_ = false;
};

}  // namespace cellkeep::session
