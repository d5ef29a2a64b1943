// SPDX-License-Identifier: Apache-2.0
//
// CONNECT: a tunnel to the target, opaque once its ClientHello has been read; or, for the host of a
// secret, one that ends here, so that requests inside it can be read.
#include "kernel-manager/egress/client_hello.hpp"
#include "kernel-manager/egress/connection.hpp"
#include "kernel-manager/egress/tls_stream.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

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

asio::awaitable<ProxyConnection::Next> ProxyConnection::tunnel(const ProxyRequest& request) {
    const bool ends_here = needs_termination(owner_->secrets(), request.target);
    if (!ends_here) {
        const auto opened = co_await open_upstream(request.target, /*tls=*/false);
        if (opened.has_error()) {
            co_return co_await refuse(nullptr, opened.error());
        }
    }
    record_.status = 200;
    answered_ = true;
    watchdog_.arm(limits().idle_timeout);
    const boost::system::error_code failed = co_await client_->write(kEstablished);
    if (failed) {
        Refusal gone =
            explain(Reason::kClientClosed, Reason::kIdleTimeout, "The client takes no more.");
        co_await end_tunnel(std::move(gone));
        co_return Next::kClose;
    }
    const auto hello = co_await read_hello();
    if (hello.has_error()) {
        co_await end_tunnel(hello.error());
        co_return Next::kClose;
    }
    if (ends_here) {
        co_return co_await terminate();
    }
    std::string hello_bytes = std::move(input_);
    input_.clear();
    auto sent = co_await send_up(std::move(hello_bytes));
    if (sent.has_error()) {
        co_await end_tunnel(sent.error());
        co_return Next::kClose;
    }
    co_await relay();
    co_return Next::kClose;
}

/// Leaves everything that came in input_.
ProxyConnection::Step ProxyConnection::read_hello() {
    watchdog_.arm(limits().head_timeout);
    while (true) {
        const auto hello = read_client_hello(input_, limits().client_hello_bytes_max);
        if (hello.has_error()) {
            const bool large = hello.error().code() == ErrorCode::kLimitExceeded;
            const Reason reason = large ? Reason::kClientHelloTooLarge : Reason::kNotTls;
            co_return Refusal{reason, hello.error().message() + "."};
        }
        if (hello.value().has_value()) {
            if (parse_host(hello.value()->server_name).has_value()) {
                record_.server_name = hello.value()->server_name;
            }
            co_return check_client_hello(*hello.value(), *target_);
        }
        const Stream::Got got = co_await read_client();
        if (got.error) {
            co_return explain(
                Reason::kClientClosed, Reason::kHeadTimeout, "No ClientHello arrived.");
        }
    }
}

asio::awaitable<void> ProxyConnection::end_tunnel(Refusal refusal) {
    if (upstream_) {
        upstream_->close();
    }
    if (!stopped_ && is_denial(refusal.reason)) {
        watchdog_.arm(limits().idle_timeout);
        const std::string alert = make_alert(refusal.reason);
        // Ignored: whoever does not take the alert sees the end of the connection.
        (void)co_await client_->write(alert);
    }
    finish_record(refusal.reason);
    if (!stopped_) {
        co_await linger();
    }
}

asio::awaitable<ProxyConnection::Next> ProxyConnection::terminate() {
    auto context = owner_->parts().authority->context_for(target_->host);
    if (context.has_error()) {
        Refusal failed;
        failed.detail = "No certificate could be made.";
        co_await end_tunnel(std::move(failed));
        co_return Next::kClose;
    }
    auto& plain = static_cast<SocketStream&>(*client_);
    auto stream = std::make_unique<TlsStream>(plain.release(), std::move(context).value());
    TlsStream& secured = *stream;
    client_ = std::move(stream);
    const std::string hello = std::exchange(input_, {});
    watchdog_.arm(limits().head_timeout);
    const boost::system::error_code failed = co_await secured.accept(hello);
    if (failed) {
        const Refusal gone =
            explain(Reason::kClientTls, Reason::kHeadTimeout, "The TLS handshake failed.");
        finish_record(gone.reason);
        co_return Next::kClose;
    }
    finish_record(Reason::kAllowed);  // each request inside gets a record of its own
    tunnel_ = target_;
    co_return Next::kKeepAlive;
}

asio::awaitable<void> ProxyConnection::relay() {
    using asio::experimental::awaitable_operators::operator&&;
    watchdog_.arm(limits().idle_timeout);
    co_await (pump(*client_, *upstream_, /*up=*/true) && pump(*upstream_, *client_, /*up=*/false));
    finish_record(stopped_.value_or(Reason::kAllowed));
}

/// One direction until its end. What ends it otherwise ends both.
asio::awaitable<void> ProxyConnection::pump(Stream& from, Stream& to, bool up) {
    auto buffer = asio::buffer(client_buffer_);
    if (!up) {
        buffer = asio::buffer(upstream_buffer_);
    }
    const auto* bytes = static_cast<const char*>(buffer.data());
    while (true) {
        const Stream::Got got = co_await from.read_some(buffer);
        if (got.error == asio::error::eof) {
            to.end_sending();
            co_return;
        }
        if (got.error) {
            stop(watchdog_.expired() ? Reason::kIdleTimeout : Reason::kAllowed);
            co_return;
        }
        Budget& budget = owner_->budget();
        if (up ? !budget.take_up(got.bytes) : !budget.take_down(got.bytes)) {
            stop(up ? Reason::kBytesUpLimit : Reason::kBytesDownLimit);
            co_return;
        }
        (up ? record_.bytes_up : record_.bytes_down) += got.bytes;
        watchdog_.arm(limits().idle_timeout);
        const boost::system::error_code failed =
            co_await to.write(std::string_view(bytes, got.bytes));
        if (failed) {
            stop(watchdog_.expired() ? Reason::kIdleTimeout : Reason::kAllowed);
            co_return;
        }
    }
}

}  // namespace cellkeep::egress
