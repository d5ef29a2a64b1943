// SPDX-License-Identifier: Apache-2.0
//
// The sessions that clients have, and the front ends that follow their coming and going. Owns the
// sessions until it lets them go. io_context thread only.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/service/session_entry.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

/// A front end that follows sessions: before create() returns, and after a session has closed.
class SessionListener {
 public:
    SessionListener() = default;
    SessionListener(const SessionListener&) = delete;
    SessionListener& operator=(const SessionListener&) = delete;
    virtual ~SessionListener() = default;
    /// A failure refuses the session.
    virtual Status on_session_created(const std::shared_ptr<Session>& session) = 0;
    virtual void on_session_closed(const std::string& session_id) = 0;
    /// Why the session cannot pass to another program in the server's process as far as this front
    /// end knows, for people; nullopt: it can.
    virtual std::optional<std::string> find_obstacle(const Session& /*session*/) const {
        return std::nullopt;
    }
    /// What this front end does for the session at present, and cannot leave; nullopt: nothing.
    virtual std::optional<std::string> find_work(const Session& /*session*/) const {
        return std::nullopt;
    }
};

class SessionRegistry {
 public:
    /// Takes a session that has ended for its clients, and removes it from the host.
    using LetGo = std::function<void(SessionEntry, Death)>;

    explicit SessionRegistry(LetGo let_go) : let_go_(std::move(let_go)) {}
    SessionRegistry(const SessionRegistry&) = delete;
    SessionRegistry& operator=(const SessionRegistry&) = delete;
    ~SessionRegistry() = default;

    /// The listener must outlive the last session. Call before the first session.
    void add_listener(SessionListener* listener) { listeners_.push_back(listener); }
    /// Announces the session to every listener and keeps it. If a listener refuses it, every
    /// listener learns that it has closed, and the entry stays the caller's.
    Status add(SessionEntry& entry);
    /// By session id or kernel id; null if there is none.
    std::shared_ptr<ManagedSession> find(const std::string& id) const;
    /// Oldest first.
    std::vector<std::shared_ptr<Session>> list() const;
    /// Ends the session for its clients, informs the listeners and lets it go. kNotFound.
    Status remove(const std::string& id, Death reason);
    /// The same of each that is lost (ManagedSession). Their ids.
    std::vector<std::string> remove_lost();
    /// Oldest first.
    const std::vector<SessionEntry>& entries() const { return entries_; }
    /// Of the session itself or of a front end.
    std::optional<std::string> find_obstacle(const ManagedSession& session) const;
    std::optional<std::string> find_work(const ManagedSession& session, bool runs_pass) const;
    /// About how many bytes of values all sessions pass, with what they share.
    std::size_t passed_bytes() const;
    /// Takes all out, oldest first. No client learns of an end.
    std::vector<SessionEntry> pass_on() { return std::exchange(entries_, {}); }
    /// Every client of every session learns of the end before the first session is let go.
    void remove_all(Death reason);

 private:
    Status announce(const std::shared_ptr<ManagedSession>& session) const;
    void close(SessionEntry entry, Death reason);

    const LetGo let_go_;
    std::vector<SessionListener*> listeners_;
    std::vector<SessionEntry> entries_;  // oldest first
};

}  // namespace cellkeep::session
