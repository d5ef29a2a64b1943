// SPDX-License-Identifier: Apache-2.0
//
// E2B's control plane over the session service: sandboxes are created, listed, prolonged, paused
// and removed. A client sends a token of this server as X-API-Key. io_context thread only.
#pragma once

#include "kernel-manager/e2b/control/idempotency.hpp"
#include "kernel-manager/e2b/control/sandbox_answer.hpp"
#include "kernel-manager/e2b/control/sandbox_book.hpp"
#include "kernel-manager/e2b/control/sandbox_order.hpp"
#include "kernel-manager/e2b/wire/sandbox_tokens.hpp"
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

class ControlRoutes {
 public:
    /// All must outlive this, and this the router.
    ControlRoutes(
        session::SessionService& service,
        SandboxBook& book,
        const SandboxTokens& tokens,
        std::vector<egress::AllowedHost> reachable);
    ControlRoutes(const ControlRoutes&) = delete;
    ControlRoutes& operator=(const ControlRoutes&) = delete;
    ~ControlRoutes() = default;

    void add_to(http::Router& router);

 private:
    using Answer = boost::asio::awaitable<http::Response>;
    using Session = std::shared_ptr<session::Session>;

    http::Handler with_sandbox(Answer (ControlRoutes::*member)(http::Request&, Session));
    using Timeout = std::optional<std::chrono::seconds>;

    boost::asio::awaitable<Result<Timeout>> read_timeout(http::Request& request) const;
    Answer create(http::Request& request);
    Answer create_new(http::Request& request, SandboxOrder order, std::string key);
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
    void add_missing(http::Router& router) const;
    Offer offer() const;
    State state_of(const session::Session& session) const;
    http::Response created(const http::Request& request, const session::Session& session) const;

    session::SessionService& service_;
    SandboxBook& book_;
    const SandboxTokens& tokens_;
    std::vector<egress::AllowedHost> reachable_;
    Idempotency idempotency_;
};

}  // namespace cellkeep::e2b
