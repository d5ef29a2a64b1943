// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/session_proxy.hpp"

#include "kernel-manager/egress/connection/connection.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

/// Connections past the maximum that get an answer which says so. Those after them are closed at
/// once.
constexpr std::size_t kRefusedAtOnceMax = 16;
/// Pause after accept(2) failed for lack of descriptors or memory.
constexpr std::chrono::milliseconds kAcceptBackoff{100};

bool is_listening(int fd) {
    int listening = 0;
    socklen_t bytes = sizeof listening;
    return ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &bytes) == 0 && listening != 0;
}

}  // namespace

bool is_denial(Reason reason) {
    switch (reason) {
        case Reason::kAllowed:
        case Reason::kResolveFailed:
        case Reason::kResolveTimeout:
        case Reason::kResolverBusy:
        case Reason::kConnectFailed:
        case Reason::kConnectTimeout:
        case Reason::kUpstreamTls:
        case Reason::kUpstreamProtocol:
        case Reason::kUpstreamTimeout:
        case Reason::kUpstreamClosed:
        case Reason::kClientTls:
        case Reason::kIdleTimeout:
        case Reason::kSessionEnded:
        case Reason::kClientClosed:
        case Reason::kInternal:
            return false;
        default:
            return true;
    }
}

SessionProxy::SessionProxy(
    asio::io_context& io,
    std::string session_id,
    NetworkPolicy policy,
    std::vector<Secret> secrets,
    ProxyParts parts)
    : io_(io),
      session_id_(std::move(session_id)),
      policy_(std::move(policy)),
      secrets_(std::move(secrets)),
      parts_(std::move(parts)),
      budget_(parts_.limits),
      refusals_logged_(parts_.limits.refusals_logged_per_minute_max),
      lookups_(std::make_shared<LookupAccount>(parts_.limits.lookups_max)),
      acceptor_(io) {}

SessionProxy::~SessionProxy() = default;

Result<std::shared_ptr<SessionProxy>> SessionProxy::open(
    asio::io_context& io,
    std::string session_id,
    NetworkPolicy policy,
    std::vector<Secret> secrets,
    ProxyParts parts,
    UniqueFd listener) {
    if (!listener || !is_listening(listener.get())) {
        return Error(ErrorCode::kSystem, "egress: the sandbox gave no listening socket");
    }
    std::shared_ptr<SessionProxy> proxy(new SessionProxy(
        io, std::move(session_id), std::move(policy), std::move(secrets), std::move(parts)));
    boost::system::error_code error;
    (void)proxy->acceptor_.assign(tcp::v4(), listener.get(), error);
    if (error) {
        return Error(ErrorCode::kSystem, "egress: watch the listener: " + error.message());
    }
    (void)listener.release();
    asio::co_spawn(
        io, [proxy] { return proxy->accept_loop(); }, asio::detached);
    return proxy;
}

asio::awaitable<void> SessionProxy::accept_loop() {
    asio::steady_timer backoff(io_);
    while (acceptor_.is_open()) {
        auto [error, socket] = co_await acceptor_.async_accept(kAwait);
        if (error == asio::error::operation_aborted) {
            continue;  // close() closed the acceptor
        }
        if (error) {
            backoff.expires_after(kAcceptBackoff);
            (void)co_await backoff.async_wait(kAwait);  // Ignored: short is fine too.
            continue;
        }
        // Ignored: cannot fail on an open descriptor (fcntl(2)).
        (void)::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
        take(std::move(socket));
    }
}

void SessionProxy::take(tcp::socket socket) {
    // Those that are being refused must not keep the places of those that could be served.
    const auto served = static_cast<std::size_t>(std::count_if(
        connections_.begin(), connections_.end(), [](const ProxyConnection* connection) {
            return connection->admission() == ProxyAdmission::kServe;
        }));
    const bool full = served >= parts_.limits.connections_max;
    if (full && connections_.size() - served >= kRefusedAtOnceMax) {
        return;  // the socket closes here
    }
    const auto connection = std::make_shared<ProxyConnection>(
        shared_from_this(),
        std::move(socket),
        full ? ProxyAdmission::kTooMany : ProxyAdmission::kServe);
    connections_.insert(connection.get());
    connection->start();
}

void SessionProxy::set_allow(std::vector<AllowedHost> allow) {
    policy_.allow = std::move(allow);
    for (ProxyConnection* connection : std::vector(connections_.begin(), connections_.end())) {
        const auto& target = connection->target();
        if (target && !allows(policy_, target->host.text, target->port)) {
            connection->stop(Reason::kPolicyChanged);
        }
    }
}

void SessionProxy::close() {
    if (std::exchange(closed_, true)) {
        return;
    }
    boost::system::error_code ignored;  // Ignored: the socket is closed in any case.
    // At once also for a copy that a child holds which is just being started.
    (void)::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    (void)acceptor_.close(ignored);
    for (ProxyConnection* connection : std::vector(connections_.begin(), connections_.end())) {
        connection->stop(Reason::kSessionEnded);
    }
    if (suppressed_ > 0) {
        EgressRecord last;
        last.session = session_id_;
        last.reason = Reason::kSessionEnded;
        record(std::move(last));
    }
}

void SessionProxy::record(EgressRecord record) {
    if (is_denial(record.reason)) {
        budget_.count_denied();
        if (!refusals_logged_.take(Budget::Clock::now())) {
            ++suppressed_;
            return;
        }
    }
    record.suppressed = std::exchange(suppressed_, 0);
    if (parts_.log) {
        parts_.log(record);
    }
}

}  // namespace cellkeep::egress
