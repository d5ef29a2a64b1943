// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/connection/tunnel.hpp"

#include "kernel-manager/egress/connection/relay.hpp"
#include "kernel-manager/egress/secrets/secret.hpp"
#include "kernel-manager/egress/tls/client_hello.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;

namespace {

constexpr const char* kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";

/// A fatal alert (RFC 8446, section 6), so that a TLS client can say more than "closed".
std::string make_alert(Reason reason) {
    constexpr char kAccessDenied = 49;
    constexpr char kMissingExtension = 109;
    constexpr char kUnrecognizedName = 112;
    char description = kAccessDenied;
    if (reason == Reason::kNoServerName) {
        description = kMissingExtension;
    } else if (reason == Reason::kServerNameMismatch) {
        description = kUnrecognizedName;
    }
    constexpr std::string_view kRecord("\x15\x03\x03\x00\x02\x02", 6);
    return std::string(kRecord) + description;
}

}  // namespace

asio::awaitable<Allowed<Next>> Tunnel::run(const ProxyRequest& request) {
    const bool ends_here = needs_termination(state_.owner->secrets(), request.target);
    if (!ends_here) {
        const auto opened = co_await upstream_.open(request.target, /*tls=*/false);
        if (opened.has_error()) {
            co_return opened.error();
        }
    }
    state_.record.fields().status = 200;
    state_.answered = true;
    state_.watchdog.arm(state_.limits().idle_timeout);
    const boost::system::error_code failed = co_await client_.stream().write(kEstablished);
    if (failed) {
        EgressRefusal gone = state_.explain(
            Reason::kClientClosed, Reason::kIdleTimeout, "The client takes no more.");
        co_await refuse(std::move(gone));
        co_return Next::kClose;
    }
    const auto hello = co_await read_hello();
    if (hello.has_error()) {
        co_await refuse(hello.error());
        co_return Next::kClose;
    }
    if (ends_here) {
        const Next next = co_await terminate();
        co_return next;
    }
    std::string hello_bytes = std::move(client_.input());
    client_.input().clear();
    auto sent = co_await upstream_.send(std::move(hello_bytes));
    if (sent.has_error()) {
        co_await refuse(sent.error());
        co_return Next::kClose;
    }
    co_await relay();
    co_return Next::kClose;
}

/// Leaves everything that came in client_.input().
Step Tunnel::read_hello() {
    state_.watchdog.arm(state_.limits().head_timeout);
    while (true) {
        const auto hello =
            read_client_hello(client_.input(), state_.limits().client_hello_bytes_max);
        if (hello.has_error()) {
            const bool large = hello.error().code() == ErrorCode::kLimitExceeded;
            const Reason reason = large ? Reason::kClientHelloTooLarge : Reason::kNotTls;
            co_return EgressRefusal{reason, hello.error().message() + "."};
        }
        if (hello.value().has_value()) {
            if (parse_host(hello.value()->server_name).has_value()) {
                state_.record.fields().server_name = hello.value()->server_name;
            }
            co_return check_client_hello(*hello.value(), *state_.target);
        }
        const Stream::Got got = co_await client_.read();
        if (got.error) {
            co_return state_.explain(
                Reason::kClientClosed, Reason::kHeadTimeout, "No ClientHello arrived.");
        }
    }
}

asio::awaitable<void> Tunnel::refuse(EgressRefusal refusal) {
    upstream_.close();
    if (!state_.stopped && is_denial(refusal.reason)) {
        state_.watchdog.arm(state_.limits().idle_timeout);
        const std::string alert = make_alert(refusal.reason);
        // Ignored: a client that does not take the alert sees the end of the connection.
        (void)co_await client_.stream().write(alert);
    }
    state_.record.finish(refusal.reason);
    if (!state_.stopped) {
        co_await client_.linger();
    }
}

asio::awaitable<Next> Tunnel::terminate() {
    auto context = state_.owner->parts().authority->context_for(state_.target->host);
    if (context.has_error()) {
        EgressRefusal failed;
        failed.detail = "No certificate could be made.";
        co_await refuse(std::move(failed));
        co_return Next::kClose;
    }
    state_.watchdog.arm(state_.limits().head_timeout);
    const boost::system::error_code failed =
        co_await client_.accept_tls(std::move(context).value());
    if (failed) {
        const EgressRefusal gone =
            state_.explain(Reason::kClientTls, Reason::kHeadTimeout, "The TLS handshake failed.");
        state_.record.finish(gone.reason);
        co_return Next::kClose;
    }
    state_.record.finish(Reason::kAllowed);  // each request inside gets a record of its own
    state_.tunnel = state_.target;
    co_return Next::kKeepAlive;
}

asio::awaitable<void> Tunnel::relay() {
    // Neither side speaks TLS here: what is inside is between client and host.
    Relay relay(
        state_,
        {static_cast<SocketStream&>(client_.stream()), client_.buffer()},
        {static_cast<SocketStream&>(upstream_.stream()), upstream_.buffer()});
    co_await relay.run();
}

}  // namespace cellkeep::egress
