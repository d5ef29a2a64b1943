// SPDX-License-Identifier: Apache-2.0
//
// Removes what is left of ended sessions from the host, while others are served. The host may let
// go of a sandbox late (a slow death, a busy cgroup): then it is tried again, and no other session
// gets the session's number until nothing is left. Owns the sandboxes that it removes.
// io_context thread only.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/service/claim.hpp"
#include "kernel-manager/service/session_entry.hpp"
#include "kernel-manager/session/checkpoints/family.hpp"
#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::session {

/// How long a caller of wait_until_gone() waits. Nearly all sessions are gone within this.
inline constexpr std::chrono::seconds kGonePatience{2};
/// A sandbox that the host has not let go of is tried again after this time, then after twice that,
/// and so on.
inline constexpr std::chrono::milliseconds kTeardownRetryFirst{20};
inline constexpr std::chrono::milliseconds kTeardownRetryMost{1000};

class SessionTeardown : public std::enable_shared_from_this<SessionTeardown> {
 public:
    using SandboxPtr = std::shared_ptr<sandbox::Sandbox>;
    using TimePoint = std::chrono::steady_clock::time_point;
    struct Hooks {
        /// One attempt, off the loop. An error: it may be tried again.
        std::function<boost::asio::awaitable<Status>(SandboxPtr)> destroy;
        /// sandbox::Sandbox::retire(), off the loop.
        std::function<boost::asio::awaitable<Status>(SandboxPtr)> retire;
        /// For finish(): blocks until the attempts that run have ended.
        std::function<void()> wait_for_attempts;
        /// For finish(): one attempt that blocks.
        std::function<void(SandboxPtr)> destroy_now;
        /// Why a sandbox that is gone had ended before its session did; empty: it had not.
        std::function<std::string(const SandboxPtr&)> unexpected_end;
        /// Nothing of a session is left, and its number is free.
        std::function<void()> on_gone;
        std::function<void(const std::string&)> log;
    };

    static std::shared_ptr<SessionTeardown> create(boost::asio::io_context& io, Hooks hooks);
    SessionTeardown(const SessionTeardown&) = delete;
    SessionTeardown& operator=(const SessionTeardown&) = delete;
    ~SessionTeardown() = default;

    /// Ends the session for its clients, and removes it in the background. Its kernel id is free at
    /// once, its number when nothing is left on the host.
    void begin(SessionEntry entry, Death reason);
    /// Returns when nothing of the session is left but what its branches need, or after
    /// kGonePatience. At once for a session that is not being removed.
    boost::asio::awaitable<void> wait_until_gone(std::string session_id);
    /// What stays for its branches does not count.
    bool is_removing() const;
    /// Returns when any session is gone, or at the deadline. At once if none is being removed.
    boost::asio::awaitable<void> wait_for_any(TimePoint deadline);

    // --- the way of what stays for branches to another program in the server's process
    /// What is left of one session.
    struct Staying {
        std::string session_id;
        std::optional<std::string> parent;  // of a branch: the id of its session
        SandboxPtr sandbox;
        std::shared_ptr<FamilyMember> family;
    };
    std::vector<Staying> staying() const;
    /// "ID (reason)" of each in which something may still run.
    std::vector<std::string> find_work() const;
    /// What stays for one of these members. It is not removed here. Precondition: none of it works.
    std::vector<PassedRemains> pass_on(
        const std::set<const FamilyMember*>& needed, SharedParts& shared);
    /// What another program has left stays for its branches.
    void go_on(Staying left, Claim<std::uint32_t> slot);

    /// The server ends: from now on begin() blocks until the session is removed, with one attempt.
    void begin_shutdown() { shutting_down_ = true; }
    /// After begin_shutdown(): removes what is left, one attempt each, and blocks for it. All that
    /// waits goes on.
    void finish();

 private:
    using Timer = std::shared_ptr<boost::asio::steady_timer>;
    struct Removal {
        std::string session_id;
        std::optional<std::string> parent;  // of a branch: the id of its session
        SandboxPtr sandbox;                 // the remover's while it tries
        Claim<std::uint32_t> slot;          // its user on the host
        std::vector<Timer> waiters;
        std::shared_ptr<FamilyMember> family;  // null: it is alone
        bool stays = false;                    // for its branches
        bool is_quiet = false;                 // nothing of it runs any more
    };

    SessionTeardown(boost::asio::io_context& io, Hooks hooks) : io_(io), hooks_(std::move(hooks)) {}
    boost::asio::awaitable<void> remove(std::shared_ptr<Removal> removal);
    /// Kills what runs in it, and removes the rest when its last branch is gone.
    boost::asio::awaitable<void> retire(std::shared_ptr<Removal> removal);
    boost::asio::awaitable<void> stay(std::shared_ptr<Removal> removal);
    void remove_now(ManagedSession& session);
    void log_late(const std::string& session_id, const Error& why) const;
    static void wake(std::vector<Timer>& waiters);

    boost::asio::io_context& io_;
    const Hooks hooks_;
    std::vector<std::shared_ptr<Removal>> removals_;
    std::vector<Timer> waiters_;  // of wait_for_any()
    bool shutting_down_ = false;
};

}  // namespace cellkeep::session
