// SPDX-License-Identifier: Apache-2.0
//
// E2B's control plane over the session service: sandboxes are created, listed, prolonged, paused
// and removed. A client sends a token of this server as X-API-Key. io_context thread only.
#pragma once

#include "kernel-manager/e2b/control/idempotency.hpp"
#include "kernel-manager/e2b/control/sandbox_answer.hpp"
#include "kernel-manager/e2b/control/sandbox_book.hpp"
#include "kernel-manager/e2b/control/sandbox_order.hpp"
#include "kernel-manager/e2b/control/snapshot_book.hpp"
#include "kernel-manager/e2b/control/snapshot_routes.hpp"
#include "kernel-manager/e2b/wire/sandbox_tokens.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/service/session_service.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::e2b {

struct ControlOptions {
    /// What the operator lets sessions reach at most.
    std::vector<egress::AllowedHost> reachable;
    /// Sandboxes are made so that there can be snapshots and forks of them.
    bool snapshots = false;
};

class ControlRoutes {
 public:
    /// All must outlive this, and this the router.
    ControlRoutes(
        session::SessionService& service,
        SandboxBook& book,
        SnapshotBook& snapshots,
        const SandboxTokens& tokens,
        ControlOptions options);
    ControlRoutes(const ControlRoutes&) = delete;
    ControlRoutes& operator=(const ControlRoutes&) = delete;
    ~ControlRoutes() = default;

    void add_to(http::Router& router);
    Idempotency& idempotency() { return idempotency_; }
    const Idempotency& idempotency() const { return idempotency_; }

 private:
    using Answer = boost::asio::awaitable<http::Response>;
    using Session = std::shared_ptr<session::Session>;

    http::Handler with_sandbox(Answer (ControlRoutes::*member)(http::Request&, Session));
    using Timeout = std::optional<std::chrono::seconds>;

    boost::asio::awaitable<Result<Timeout>> read_timeout(http::Request& request) const;
    Answer create(http::Request& request);
    Answer create_new(http::Request& request, SandboxOrder order, std::string key);
    /// Of its template or snapshot.
    boost::asio::awaitable<Result<Session>> start(
        const http::Request& request, SandboxOrder& order);
    Answer list(http::Request& request);
    Answer list_metrics(http::Request& request);
    Answer get(http::Request& request, Session session);
    Answer remove(http::Request& request, Session session);
    Answer set_timeout(http::Request& request, Session session);
    Answer pause(http::Request& request, Session session);
    Answer connect(http::Request& request, Session session);
    Answer metrics(http::Request& request, Session session);
    Answer set_network(http::Request& request, Session session);
    Answer find_template(http::Request& request);
    Offer offer() const;
    State state_of(const session::Session& session) const;
    http::Response created(const http::Request& request, const session::Session& session) const;

    session::SessionService& service_;
    SandboxBook& book_;
    SnapshotBook& snapshots_;
    const SandboxTokens& tokens_;
    const ControlOptions options_;
    SnapshotRoutes snapshot_routes_;
    Idempotency idempotency_;
};

}  // namespace cellkeep::e2b
