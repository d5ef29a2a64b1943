// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/session_proxy.hpp"

#include "kernel-manager/egress/connection/connection.hpp"
#include "kernel-manager/egress/stream.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
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

/// Of a connected TCP socket.
Result<tcp::socket> adopt(asio::io_context& io, UniqueFd fd) {
    sockaddr_storage own{};
    socklen_t bytes = sizeof own;
    if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0) {
        return Error::from_errno(errno, "getsockname");
    }
    tcp::socket socket(io);
    boost::system::error_code error;
    (void)socket.assign(own.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), fd.get(), error);
    if (error) {
        return Error(ErrorCode::kSystem, "egress: watch a connection: " + error.message());
    }
    (void)fd.release();
    return socket;
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
    std::shared_ptr<SessionProxy> proxy(new SessionProxy(
        io, std::move(session_id), std::move(policy), std::move(secrets), std::move(parts)));
    BOOST_OUTCOME_TRY(proxy->listen(std::move(listener)));
    return proxy;
}

Status SessionProxy::listen(UniqueFd listener) {
    if (!listener || !is_listening(listener)) {
        return Error(ErrorCode::kSystem, "egress: the sandbox gave no listening socket");
    }
    boost::system::error_code error;
    (void)acceptor_.assign(tcp::v4(), listener.get(), error);
    if (!error) {
        (void)listener.release();
        (void)acceptor_.native_non_blocking(true, error);
    }
    if (error) {
        return Error(ErrorCode::kSystem, "egress: watch the listener: " + error.message());
    }
    asio::co_spawn(
        io_, [self = shared_from_this()] { return self->accept_loop(); }, asio::detached);
    return ok();
}

asio::awaitable<void> SessionProxy::accept_loop() {
    asio::steady_timer backoff(io_);
    while (acceptor_.is_open()) {
        // What has been accepted is served in the same turn: so what waits in the listener, and
        // nothing else, can go to another program with it.
        auto [error] = co_await acceptor_.async_wait(tcp::acceptor::wait_read, kAwait);
        if (error == asio::error::operation_aborted || !acceptor_.is_open()) {
            continue;  // close() closed the acceptor, or it was given away
        }
        if (error || !accept_one()) {
            backoff.expires_after(kAcceptBackoff);
            (void)co_await backoff.async_wait(kAwait);  // Ignored: short is fine too.
        }
    }
}

/// False if there is no place for another one.
bool SessionProxy::accept_one() {
    UniqueFd accepted(::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted) {
        return errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
    }
    tcp::socket socket(io_);
    boost::system::error_code error;
    (void)socket.assign(tcp::v4(), accepted.get(), error);
    if (error) {
        return false;
    }
    (void)accepted.release();
    take(std::move(socket));
    return true;
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

Result<std::shared_ptr<SessionProxy>> SessionProxy::go_on(
    asio::io_context& io,
    std::string session_id,
    PassedProxy passed,
    std::vector<Secret> secrets,
    ProxyParts parts) {
    std::shared_ptr<SessionProxy> proxy(new SessionProxy(
        io, std::move(session_id), std::move(passed.policy), std::move(secrets), std::move(parts)));
    proxy->budget_.go_on(passed.traffic, passed.requests);
    proxy->refusals_logged_.go_on(passed.refusals);
    proxy->suppressed_ = passed.suppressed;
    Status going = proxy->listen(std::move(passed.listener));
    for (PassedConnection& connection : passed.connections) {
        if (going.has_value()) {
            going = proxy->go_on_with(std::move(connection));
        }
    }
    if (going.has_error()) {
        proxy->close();
        return std::move(going).error();
    }
    return proxy;
}

Status SessionProxy::go_on_with(PassedConnection passed) {
    BOOST_OUTCOME_TRY(auto client, adopt(io_, std::move(passed.client)));
    const auto connection = std::make_shared<ProxyConnection>(
        shared_from_this(), std::move(client), ProxyAdmission::kServe);
    connections_.insert(connection.get());
    if (!passed.tunnel) {
        connection->start();
        return ok();
    }
    BOOST_OUTCOME_TRY(auto socket, adopt(io_, std::move(passed.host)));
    const Authority target = passed.tunnel->target;
    const bool reached = parts_.dialer->may_reach(passed.tunnel->address);
    connection->go_on(std::make_unique<SocketStream>(std::move(socket)), *std::move(passed.tunnel));
    if (!reached) {
        connection->stop(Reason::kAddressRefused);
    } else if (!allows(policy_, target.host.text, target.port)) {
        connection->stop(Reason::kPolicyChanged);
    }
    return ok();
}

bool SessionProxy::is_at_rest() const {
    return std::all_of(
        connections_.begin(), connections_.end(), [](const ProxyConnection* connection) {
            return connection->is_at_rest();
        });
}

std::size_t SessionProxy::passed_bytes() const {
    const std::size_t moments =
        budget_.requests().recent().size() + refusals_logged_.recent().size();
    std::size_t bytes = (1 + policy_.allow.size() + policy_.secrets.size() + connections_.size()) *
                            kPassedProxyBytes +
                        moments * kPassedMomentBytes;
    for (const ProxyConnection* connection : connections_) {
        bytes += connection->held();
    }
    return bytes;
}

PassedProxy SessionProxy::pass_on() {
    closed_ = true;
    PassedProxy passed;
    passed.policy = policy_;
    passed.traffic = budget_.traffic();
    const auto& requests = budget_.requests().recent();
    passed.requests.assign(requests.begin(), requests.end());
    const auto& refusals = refusals_logged_.recent();
    passed.refusals.assign(refusals.begin(), refusals.end());
    passed.suppressed = suppressed_;
    for (ProxyConnection* connection : std::vector(connections_.begin(), connections_.end())) {
        if (auto one = connection->pass_on()) {
            passed.connections.push_back(*std::move(one));
        }
    }
    boost::system::error_code error;
    const int listener = acceptor_.release(error);
    passed.listener = error ? UniqueFd() : UniqueFd(listener);
    return passed;
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
