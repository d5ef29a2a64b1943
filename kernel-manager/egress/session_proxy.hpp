// SPDX-License-Identifier: Apache-2.0
//
// One session's way out: the listener that its sandbox handed over, the connections accepted on it,
// what they share. The sockets that the guest holds belong to its own network namespace; those that
// reach out are made here, outside. Owns: the listener, the policy in force, the budget, the
// session's secrets. io_context thread only; ends with close(), connections let go after it.
#pragma once

#include "kernel-manager/egress/budget.hpp"
#include "kernel-manager/egress/dial/dialer.hpp"
#include "kernel-manager/egress/egress_refusal.hpp"
#include "kernel-manager/egress/limits.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/egress/passing/passed_proxy.hpp"
#include "kernel-manager/egress/secrets/secret.hpp"
#include "kernel-manager/egress/target.hpp"
#include "kernel-manager/egress/tls/tls_authority.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::egress {

/// One request, when it is over, for the log. No path and no query: they may hold what is secret.
struct EgressRecord {
    std::string session;
    Reason reason = Reason::kInternal;
    std::string method;  // one that the proxy knows, "other", or empty if no head was read
    Authority target;
    std::string address;      // that was dialled, or empty
    std::string server_name;  // of a tunnel's ClientHello
    std::string secret;       // name of the one that was put in
    int status = 0;           // what the client was answered
    std::uint64_t bytes_up = 0;
    std::uint64_t bytes_down = 0;
    std::chrono::milliseconds duration{0};
    std::uint64_t suppressed = 0;  // refusals before it that have no record of their own
};
using EgressLog = std::function<void(const EgressRecord&)>;

/// Whether the reason is a rule that was broken, not the weather.
bool is_denial(Reason reason);

/// What all sessions share.
struct ProxyParts {
    std::shared_ptr<const Dialer> dialer;
    std::shared_ptr<TlsAuthority> authority;  // null: there are no secrets
    std::shared_ptr<boost::asio::ssl::context> client_context;
    ProxyLimits limits;
    EgressLog log;
};

class ProxyConnection;

class SessionProxy : public std::enable_shared_from_this<SessionProxy> {
 public:
    /// Accepts on listener (a listening TCP socket) from now on. kSystem if it is none.
    static Result<std::shared_ptr<SessionProxy>> open(
        boost::asio::io_context& io,
        std::string session_id,
        NetworkPolicy policy,
        std::vector<Secret> secrets,
        ProxyParts parts,
        UniqueFd listener);
    SessionProxy(const SessionProxy&) = delete;
    SessionProxy& operator=(const SessionProxy&) = delete;
    ~SessionProxy();

    const NetworkPolicy& policy() const { return policy_; }
    const Traffic& traffic() const { return budget_.traffic(); }
    std::size_t connections() const { return connections_.size(); }
    /// A new list in place of the old. Connections to what is no longer on it end at once.
    void set_allow(std::vector<AllowedHost> allow);
    /// Ends everything. Idempotent.
    void close();

    // --- its way to another program in the server's process
    /// In place of open(), of one that another program has left. Tunnels to what is not allowed any
    /// more end at once. kSystem.
    static Result<std::shared_ptr<SessionProxy>> go_on(
        boost::asio::io_context& io,
        std::string session_id,
        PassedProxy passed,
        std::vector<Secret> secrets,
        ProxyParts parts);
    /// No request is under way: connections wait for one, or carry the bytes of tunnels.
    bool is_at_rest() const;
    /// About how many bytes of values pass_on() gives.
    std::size_t passed_bytes() const;
    /// What another program goes on with; nothing is served here any more. What comes to the
    /// listener waits. Connections that end here, with TLS, are closed. Precondition: is_at_rest().
    PassedProxy pass_on();

    // --- for its connections
    boost::asio::io_context& io() { return io_; }
    const std::string& session_id() const { return session_id_; }
    const ProxyParts& parts() const { return parts_; }
    const std::vector<Secret>& secrets() const { return secrets_; }
    Budget& budget() { return budget_; }
    const std::shared_ptr<LookupAccount>& lookups() const { return lookups_; }
    bool closed() const { return closed_; }
    void forget(ProxyConnection* connection) { connections_.erase(connection); }
    /// Counts it, and gives it to the log: of refusals refusals_logged_per_minute_max in a minute,
    /// the others are counted in the next one's `suppressed`.
    void record(EgressRecord record);

 private:
    SessionProxy(
        boost::asio::io_context& io,
        std::string session_id,
        NetworkPolicy policy,
        std::vector<Secret> secrets,
        ProxyParts parts);
    Status listen(UniqueFd listener);
    boost::asio::awaitable<void> accept_loop();
    bool accept_one();
    void take(boost::asio::ip::tcp::socket socket);
    Status go_on_with(PassedConnection passed);

    boost::asio::io_context& io_;
    std::string session_id_;
    NetworkPolicy policy_;
    std::vector<Secret> secrets_;
    ProxyParts parts_;
    Budget budget_;
    MinuteAllowance refusals_logged_;
    std::uint64_t suppressed_ = 0;
    std::shared_ptr<LookupAccount> lookups_;
    boost::asio::ip::tcp::acceptor acceptor_;
    std::set<ProxyConnection*> connections_;
    bool closed_ = false;
};

}  // namespace cellkeep::egress
