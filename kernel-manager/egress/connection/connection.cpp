// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/connection/connection.hpp"

#include "kernel-manager/egress/connection/exchange.hpp"
#include "kernel-manager/egress/connection/relay.hpp"
#include "kernel-manager/egress/connection/tunnel.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/egress/tls/tls_stream.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;

namespace {

constexpr int kEstablishedStatus = 200;

}  // namespace

ProxyConnection::ProxyConnection(
    std::shared_ptr<SessionProxy> owner, asio::ip::tcp::socket socket, ProxyAdmission admission)
    : admission_(admission),
      state_(std::move(owner)),
      client_(state_, std::move(socket)),
      upstream_(state_) {
    state_.watchdog.on_expiry([this] {
        upstream_.close();
        client_.stream().cancel();
    });
}

ProxyConnection::~ProxyConnection() {
    state_.owner->forget(this);
}

void ProxyConnection::start() {
    asio::co_spawn(
        state_.owner->io(), [self = shared_from_this()] { return self->run(); }, asio::detached);
}

void ProxyConnection::stop(Reason why) {
    state_.set_stopped(why);
    upstream_.close();
    client_.stream().close();
}

asio::awaitable<void> ProxyConnection::run() {
    if (admission_ == ProxyAdmission::kTooMany) {
        co_await refuse_connection();
    } else {
        Next next = Next::kKeepAlive;
        while (next == Next::kKeepAlive && !state_.stopped) {
            next = co_await serve_one();
        }
    }
    co_await end();
}

asio::awaitable<void> ProxyConnection::end() {
    state_.watchdog.arm(state_.limits().goodbye_timeout);
    if (!state_.stopped && state_.tunnel) {
        co_await client_.stream().finish();
    }
    state_.watchdog.stop();
    client_.stream().close();
}

void ProxyConnection::go_on(std::unique_ptr<SocketStream> host, PassedTunnel tunnel) {
    EgressRecord record;
    record.method = "CONNECT";
    record.target = tunnel.target;
    record.address = tunnel.address;
    record.server_name = tunnel.server_name;
    record.status = kEstablishedStatus;
    record.bytes_up = tunnel.bytes_up;
    record.bytes_down = tunnel.bytes_down;
    state_.record.go_on(std::move(record), tunnel.began_at);
    state_.target = tunnel.target;
    state_.answered = true;
    upstream_.go_on(std::move(host));
    asio::co_spawn(
        state_.owner->io(),
        [self = shared_from_this(), tunnel = std::move(tunnel)]() mutable {
            return self->carry_on(std::move(tunnel));
        },
        asio::detached);
}

asio::awaitable<void> ProxyConnection::carry_on(PassedTunnel tunnel) {
    Relay relay(
        state_,
        {static_cast<SocketStream&>(client_.stream()), client_.buffer()},
        {static_cast<SocketStream&>(upstream_.stream()), upstream_.buffer()});
    relay.go_on(tunnel);
    co_await relay.run();
    co_await end();
}

bool ProxyConnection::is_at_rest() const {
    if (state_.stopped) {
        return false;  // its record is not written yet
    }
    // What a TLS library has read cannot pass: so what has come is answered first.
    return state_.relay != nullptr || (state_.idle && !(state_.tunnel && client_.has_unread()));
}

std::size_t ProxyConnection::held() const {
    return state_.relay != nullptr ? state_.relay->held() : 0;
}

std::optional<PassedConnection> ProxyConnection::pass_on() {
    if (state_.tunnel) {
        // The keys are in the library. Its wait ends as with a client that has gone, and the client
        // hears the end as TLS says it.
        static_cast<TlsStream&>(client_.stream()).expect_no_goodbye();
        client_.stream().cancel();
        return std::nullopt;
    }
    PassedConnection passed;
    passed.client = static_cast<SocketStream&>(client_.stream()).give_away();
    if (state_.relay != nullptr) {
        passed.host = static_cast<SocketStream&>(upstream_.stream()).give_away();
    }
    if (!passed.client || (state_.relay != nullptr && !passed.host)) {
        return std::nullopt;  // it has just ended
    }
    if (state_.relay != nullptr) {
        passed.tunnel = state_.relay->pass_on();
    }
    return passed;
}

asio::awaitable<void> ProxyConnection::refuse_connection() {
    state_.record.begin();
    state_.record.start_clock();
    EgressRefusal full;
    full.reason = Reason::kTooManyConnections;
    full.detail = "The session has " + std::to_string(state_.limits().connections_max) +
                  " connections to the proxy already.";
    EgressRefusal refusal = charge().value_or(std::move(full));
    (void)co_await refuse(nullptr, std::move(refusal));
}

std::optional<EgressRefusal> ProxyConnection::charge() {
    state_.owner->budget().count_request();
    if (state_.owner->budget().take_request(Budget::Clock::now())) {
        return std::nullopt;
    }
    return EgressRefusal{
        Reason::kTooManyRequests,
        "The session has made " + std::to_string(state_.limits().requests_per_minute_max) +
            " requests in the last minute."};
}

Allowed<ProxyRequest> ProxyConnection::admit(const MessageReader& reader) {
    state_.record.fields().method = name_for_log(reader.head().method);
    if (auto too_many = charge()) {
        return *std::move(too_many);
    }
    const Budget& budget = state_.owner->budget();
    auto request = state_.tunnel ? read_inner_request(reader.head(), *state_.tunnel)
                                 : read_proxy_request(reader.head());
    if (request.has_error()) {
        return request;
    }
    const Authority& to = request.value().target;
    state_.record.fields().target = to;
    if (!allows(state_.owner->policy(), to.host.text, to.port)) {
        return EgressRefusal{
            Reason::kNotAllowed, to_string(to) + " is not in this session's network.allow."};
    }
    if (!budget.up_left()) {
        return EgressRefusal{
            Reason::kBytesUpLimit,
            "The session has sent its " + std::to_string(state_.limits().bytes_up_max) + " bytes."};
    }
    if (!budget.down_left()) {
        return EgressRefusal{
            Reason::kBytesDownLimit,
            "The session has received its " + std::to_string(state_.limits().bytes_down_max) +
                " bytes."};
    }
    state_.target = to;
    return request;
}

asio::awaitable<Next> ProxyConnection::serve_one() {
    state_.record.begin();
    state_.answered = false;
    upstream_.reset();
    MessageReader reader(
        MessageReader::Kind::kRequest, state_.limits().head_bytes_max, state_.limits().headers_max);
    const auto head = co_await client_.read_head(reader);
    state_.record.start_clock();
    if (head.has_error()) {
        const Reason reason = head.error().reason;
        if (reason == Reason::kClientClosed || reason == Reason::kIdleTimeout || state_.stopped) {
            state_.record.drop();
            co_return Next::kClose;
        }
        EgressRefusal refusal = charge().value_or(head.error());
        co_return co_await refuse(nullptr, std::move(refusal));
    }
    if (state_.owner->closed()) {
        // The proxy has ended. It has passed nothing on, so the log must not have the request.
        state_.record.drop();
        co_return Next::kClose;
    }
    const auto request = admit(reader);
    if (request.has_error()) {
        co_return co_await refuse(&reader, request.error());
    }
    if (request.value().tunnel) {
        Tunnel tunnel(state_, client_, upstream_);
        const auto next = co_await tunnel.run(request.value());
        if (next.has_error()) {
            co_return co_await refuse(nullptr, next.error());
        }
        co_return next.value();
    }
    Exchange exchange(state_, client_, upstream_, reader, request.value());
    const auto next = co_await exchange.run();
    if (next.has_error()) {
        co_return co_await refuse(&reader, next.error());
    }
    if (!state_.tunnel) {
        state_.target.reset();
    }
    co_return next.value();
}

asio::awaitable<Next> ProxyConnection::refuse(const MessageReader* reader, EgressRefusal refusal) {
    RequestRecord& record = state_.record;
    // A client that asks too often has to connect again.
    const bool keep = reader != nullptr && reader->done() && reader->keep_alive() &&
                      !state_.answered && !state_.stopped && !record.fields().method.empty() &&
                      record.fields().method != "CONNECT" &&
                      refusal.reason != Reason::kTooManyRequests;
    const Afterwards after = keep ? Afterwards::kKeepAlive : Afterwards::kClose;
    if (!state_.answered && !state_.stopped) {
        record.fields().status = status_of(refusal.reason);
        const std::string text =
            to_http(refusal, record.fields().target, after, record.fields().method == "HEAD");
        state_.answered = true;
        state_.watchdog.arm(state_.limits().idle_timeout);
        const boost::system::error_code failed = co_await client_.stream().write(text);
        if (failed) {
            record.finish(refusal.reason);
            co_return Next::kClose;
        }
    }
    record.finish(refusal.reason);
    upstream_.close();  // nothing is asked there any more
    if (!state_.tunnel) {
        state_.target.reset();
    }
    if (keep) {
        co_return Next::kKeepAlive;
    }
    if (!state_.stopped) {
        co_await client_.linger();
    }
    co_return Next::kClose;
}

}  // namespace cellkeep::egress
