// SPDX-License-Identifier: Apache-2.0
//
// The only owner of sessions. Front ends create, find and remove them here and may listen to their
// coming and going. One Service per process, on one io_context thread: Sandbox::create must be
// called by the server's main thread, so that thread runs the io_context.
#pragma once

#include "kernel-manager/session/kernel_catalog.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::session {

struct ServiceConfig {
    std::size_t sessions_max = 64;
    LimitCeilings ceilings;
    /// Control names whose absence is accepted (--allow-degraded).
    std::set<std::string, std::less<>> allow_degraded;
    /// In root mode session n runs as host uid and gid host_id_base + n.
    std::uint32_t host_id_base = 900'000;
    std::chrono::milliseconds start_timeout{60'000};
    KernelCatalog catalog;
};

/// Told about sessions by the Service, before create() returns and after a session has closed.
class SessionListener {
 public:
    SessionListener() = default;
    SessionListener(const SessionListener&) = delete;
    SessionListener& operator=(const SessionListener&) = delete;
    virtual ~SessionListener() = default;
    /// A failure refuses the session.
    virtual Status on_session_created(const std::shared_ptr<Session>& session) = 0;
    virtual void on_session_closed(const std::string& session_id) = 0;
};

class Service {
 public:
    Service(boost::asio::io_context& io, ServiceConfig config);
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;
    ~Service();

    /// The listener must outlive the Service's last session. Call before the first session.
    void add_listener(SessionListener* listener);

    /// A sandbox with a kernel that has answered its first request, and the files in place.
    /// kLimitExceeded when sessions_max is reached ("too many sessions", counted from the moment of
    /// the request, so that no burst can pass it), kInvalidArgument names the field, kUnavailable
    /// names the missing control and its fix, kTimeout if the kernel was not ready in time.
    boost::asio::awaitable<Result<std::shared_ptr<Session>>> create(SessionOptions options);

    /// By session id or kernel id; null if there is none.
    std::shared_ptr<Session> find(const std::string& id) const;
    /// Oldest first.
    std::vector<std::shared_ptr<Session>> list() const;
    /// kNotFound. When it returns, nothing of the session is left.
    Status remove(const std::string& id, Death reason = {Death::Kind::kRequested, 0});

    /// Refuses new sessions and closes all.
    void shutdown();

    const KernelCatalog& catalog() const;
    const ServiceConfig& config() const;

 private:
    struct State;
    std::shared_ptr<State> state_;  // posted work may outlive the Service
};

}  // namespace cellkeep::session
