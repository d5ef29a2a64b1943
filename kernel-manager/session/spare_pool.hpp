// SPDX-License-Identifier: Apache-2.0
//
// Sessions made in advance, for nobody: whoever asks for one that fits gets it without waiting for
// an interpreter. Makes a few at a time in the background, replaces what was handed out or died,
// and backs off when that fails, so that a broken installation costs no hot loop. Owns the spares;
// how one is made and let go of is the Service's. io_context thread only.
#pragma once

#include "kernel-manager/session/completion.hpp"
#include "kernel-manager/session/live_session.hpp"
#include "kernel-manager/session/retry_delay.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

/// After a failure the next spare is tried this much later, then twice that, and so on.
inline constexpr std::chrono::milliseconds kSpareRetryFirst{1000};
inline constexpr std::chrono::milliseconds kSpareRetryMost{60'000};

/// How many are made at a time: more would only hold up those who ask for something else.
inline constexpr std::size_t kSparesMadeAtOnce = 3;

/// Whether a session that was made for nobody can be given to one who asks for this: what cannot be
/// changed any more must be equal, and no variable may be asked for that is only read when a
/// process starts.
bool fits(const SessionOptions& spare, const SessionOptions& asked);

class SparePool : public std::enable_shared_from_this<SparePool> {
 public:
    using Spare = std::shared_ptr<LiveSession>;
    /// What is kept ready.
    struct Kind {
        SessionOptions options;
        std::size_t count = 0;
    };
    struct Hooks {
        /// One spare, ready; an error if it cannot be made now.
        std::function<boost::asio::awaitable<Result<Spare>>(SessionOptions)> make;
        /// Ends one and gives its place back.
        std::function<void(const Spare&)> discard;
        /// Whether there is a place for one more besides so many that are being made, which may
        /// have theirs already, and a place for somebody's session.
        std::function<bool(std::size_t coming)> has_room;
        std::function<void(const std::string&)> log;
    };

    static std::shared_ptr<SparePool> create(
        boost::asio::io_context& io, std::vector<Kind> kinds, Hooks hooks);
    SparePool(const SparePool&) = delete;
    SparePool& operator=(const SparePool&) = delete;
    ~SparePool() = default;

    /// Begins to fill up, in the background; does nothing if it is full or busy with it. Kinds in
    /// their order.
    void fill();
    /// A spare that fits, which is the caller's from now on; null if there is none. Fills up.
    Spare take(const SessionOptions& asked);
    /// Lets one go to make room; false if there is none.
    bool give_way();
    /// One has died.
    void drop(const std::string& session_id);
    /// Waits for the next spare of those being made, if any is: whether it is ready.
    boost::asio::awaitable<bool> wait_for_making();
    /// No more spares; those that are ready are let go.
    void stop();

    std::size_t size() const { return ready_.size(); }
    bool is_making() const { return !being_made_.empty(); }

 private:
    SparePool(boost::asio::io_context& io, std::vector<Kind> kinds, Hooks hooks);
    /// A kind of which there are not enough, those being made counted; null if there is none.
    const Kind* missing() const;
    boost::asio::awaitable<void> make_one(SessionOptions options);
    void tell(bool ready);
    void fill_later();

    boost::asio::io_context& io_;
    std::vector<Kind> kinds_;
    Hooks hooks_;
    std::vector<Spare> ready_;
    std::vector<SessionOptions> being_made_;
    std::shared_ptr<Completion<bool>> made_;  // set when the next one is ready or has failed
    boost::asio::steady_timer retry_timer_;
    RetryDelay retry_delay_{kSpareRetryFirst, kSpareRetryMost};
    bool waiting_ = false;  // for retry_timer_
    bool stopped_ = false;
};

}  // namespace cellkeep::session
