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
    /// None: only the session's own limits end it, or it is paused.
    std::optional<Clock::time_point> ends_at;
    std::chrono::seconds lives{0};  // from when it wakes on; 0: it has no end
    bool pause_at_end = false;      // else it is removed
    bool resume_on_use = false;     // else a paused one is not there for requests
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

    /// From now; of one that is paused, from when it wakes.
    void set_end(const session::Session& session, std::chrono::seconds timeout);
    /// Stops everything inside. kConflict if it is paused already; as Session::freeze().
    Status pause(session::Session& session);
    /// A paused one goes on, for as long as it was made for. Returns whether it was paused.
    static bool resume(session::Session& session);
    /// A client has paused it, or its end. That lasts until any front end asks something of what is
    /// inside.
    static bool is_paused(const session::Session& session) { return session.info().paused; }

    // --- another program in the server's process
    using Records = std::map<std::string, SandboxRecord>;  // by session id
    bool knows(const std::string& session_id) const { return records_.contains(session_id); }
    const Records& records() const { return records_; }
    /// No sandbox is ended here any more.
    void leave();
    /// What the program before knew of sessions that live on. What has become due meanwhile is done
    /// in the next turn of the loop.
    void go_on(Records records);

 private:
    void on_woken(const std::string& session_id);
    void set_alarm();
    void end_due();
    void end_one(const std::string& session_id);

    session::SessionService& service_;
    Records records_;
    Alarm alarm_;
};

}  // namespace cellkeep::e2b
