// SPDX-License-Identifier: Apache-2.0
//
// What E2B's clients know of a session and the session does not: its template, when it ends and
// what happens then, whether a client has paused it. Owns those records and the one alarm that ends
// or pauses sandboxes; the sessions are the service's. A session that another front end has made is
// a sandbox too, without an end of this kind. io_context thread only.
#pragma once

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/service/session_registry.hpp"
#include "kernel-manager/service/session_service.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::e2b {

struct SandboxRecord {
    using Clock = std::chrono::steady_clock;

    std::string template_id;
    std::optional<Clock::time_point> ends_at;  // none: only the session's own limits end it
    bool pause_at_end = false;                 // else it is removed
    bool resume_on_use = false;                // else a paused one is not there for requests
    bool paused = false;                       // a client did it, or its end
    /// CPU time at the last look, for the share of the time between two looks.
    std::chrono::microseconds cpu_seen{0};
    Clock::time_point looked_at;
};

class SandboxBook : public session::SessionListener {
 public:
    using SessionPtr = std::shared_ptr<session::Session>;

    /// The service must outlive this.
    SandboxBook(boost::asio::io_context& io, session::SessionService& service);
    SandboxBook(const SandboxBook&) = delete;
    SandboxBook& operator=(const SandboxBook&) = delete;
    ~SandboxBook() override = default;

    // --- session::SessionListener
    Status on_session_created(const std::shared_ptr<session::Session>& session) override;
    void on_session_closed(const std::string& session_id) override;

    /// Null if there is none, or none that the principal may see.
    SessionPtr find(const http::Principal& principal, std::string_view sandbox_id) const;
    /// By session id, for those who have shown a token of the sandbox.
    SessionPtr find(const std::string& session_id) const { return service_.find(session_id); }

    /// Of a session that lives.
    void keep(const std::string& session_id, SandboxRecord record);
    /// A record with nothing in it for a session that has none.
    SandboxRecord record(const std::string& session_id) const;
    SandboxRecord& record_of(const std::string& session_id) { return records_[session_id]; }

    /// From now.
    void set_end(const std::string& session_id, std::chrono::seconds timeout);
    /// Stops everything inside. kConflict if it is paused already; as Session::freeze().
    Status pause(session::Session& session);
    /// A paused one goes on. Returns whether it was paused.
    bool resume(session::Session& session);
    /// A client's pause lasts until any front end asks something of the session.
    bool is_paused(const session::Session& session) const;

 private:
    void set_alarm();
    void end_due();
    void end_one(const std::string& session_id);

    session::SessionService& service_;
    std::map<std::string, SandboxRecord> records_;  // by session id
    Alarm alarm_;
};

}  // namespace cellkeep::e2b
