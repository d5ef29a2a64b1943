// SPDX-License-Identifier: Apache-2.0
//
// When a session at rest is frozen: a pure decision, and the timer and the state around it.
// IdleFreezer owns its timer; what it looks at and what it freezes is behind its hooks.
// io_context thread only.
#pragma once

#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace cellkeep::session {

/// Longer than a person thinks between two cells, and an agent between two calls, most of the time;
/// a thirtieth of the time after which an idle session ends.
inline constexpr std::chrono::seconds kFreezeAfterDefault{60};
inline constexpr std::chrono::seconds kFreezeAfterMax{7LL * 86'400};

/// What a look into a session's sandbox shows; it wakes nothing there.
struct RestLook {
    bool waiting = false;  // every thread inside waits, without a time limit
    std::chrono::microseconds cpu_time{0};
};

struct FreezeSituation {
    using Time = std::chrono::steady_clock::time_point;

    std::chrono::milliseconds after{0};  // 0: never
    bool busy = false;                   // something runs, waits, or is on its way
    bool frozen = false;
    Time last_used;
    std::optional<Time> looked_at;  // the last look
};

struct FreezeDecision {
    bool look = false;
    /// Without a value: when it has been used again.
    std::optional<FreezeSituation::Time> ask_again;
};

/// Two looks, half of the time and all of it after the last use, and another one each half while
/// they show work.
FreezeDecision decide_freeze(const FreezeSituation& situation, FreezeSituation::Time now);

/// Nothing was done between two looks, and nothing will be done by itself.
bool shows_rest(const std::optional<RestLook>& before, const RestLook& now);

class IdleFreezer {
 public:
    struct Hooks {
        std::function<bool()> busy;
        /// Work of the server's own is under way inside, which a stop in its middle would spoil: a
        /// copy of the interpreter is made or woken. It ends by itself, and settle() follows.
        std::function<bool()> settling;
        /// After an error it is never asked again.
        std::function<Result<RestLook>()> look;
        /// Asks for it and does not wait until it has come. A failure is taken back by thaw().
        std::function<Status()> freeze;
        std::function<Status()> thaw;
        std::function<void(bool frozen)> changed;
        std::function<void(const Error&)> failed;
    };

    IdleFreezer(boost::asio::io_context& io, std::chrono::milliseconds after, Hooks hooks);
    IdleFreezer(const IdleFreezer&) = delete;
    IdleFreezer& operator=(const IdleFreezer&) = delete;
    ~IdleFreezer() = default;

    /// It is being used, or has just been: the time counts from now. Costs next to nothing.
    void note_use();
    /// Before anything is asked of what is inside.
    void wake();
    /// Also what is in use, and where nothing is frozen for being idle. Until wake(), which calls
    /// `woken` once, if it is not empty; the one of an earlier call is forgotten. While
    /// Hooks::settling it is put off until settle(). If it fails then, it was woken.
    Status freeze(std::function<void()> woken);
    /// What freeze() was put off for may have ended.
    void settle();
    bool frozen() const { return frozen_; }
    /// By freeze(), not for being idle; also while that is put off.
    bool paused() const { return paused_since_.has_value(); }
    /// For how long clients have had it paused, all pauses together, until now. A run's wall time
    /// leaves that out.
    std::chrono::nanoseconds paused_for(FreezeSituation::Time now) const;
    /// Since when clients have it paused.
    std::optional<FreezeSituation::Time> paused_since() const { return paused_since_; }
    /// It was frozen by freeze() of another program in the server's process, and is, since then.
    void go_on_paused(FreezeSituation::Time since);
    /// For good; what is frozen stays so.
    void stop();

 private:
    void ask();
    void arm(FreezeSituation::Time when);
    void look();
    Status stop_processes();
    void end_pause();
    void tell_woken();

    std::chrono::milliseconds after_;
    Hooks hooks_;
    boost::asio::steady_timer timer_;
    bool armed_ = false;
    bool frozen_ = false;
    std::optional<FreezeSituation::Time> paused_since_;  // and not frozen_: put off
    std::chrono::nanoseconds paused_before_{0};          // of pauses that have ended
    std::function<void()> woken_;
    FreezeSituation::Time last_used_;
    std::optional<FreezeSituation::Time> looked_at_;
    std::optional<RestLook> before_;  // of the last look since the last use
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace cellkeep::session
