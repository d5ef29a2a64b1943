// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/connection.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

namespace {

/// What is still read and thrown away from a client that was refused while it sent.
constexpr std::size_t kLingerBytesMax = 1ULL << 20U;

}  // namespace

ProxyConnection::ProxyConnection(
    std::shared_ptr<SessionProxy> owner, asio::ip::tcp::socket socket, Admittance admittance)
    : owner_(std::move(owner)),
      admittance_(admittance),
      client_(std::make_unique<SocketStream>(std::move(socket))),
      watchdog_(owner_->io().get_executor()) {
    watchdog_.on_expiry([this] {
        if (upstream_) {
            upstream_->close();
        }
        client_->cancel();
    });
}

ProxyConnection::~ProxyConnection() {
    owner_->forget(this);
}

void ProxyConnection::start() {
    asio::co_spawn(
        owner_->io(), [self = shared_from_this()] { return self->run(); }, asio::detached);
}

void ProxyConnection::stop(Reason why) {
    if (!stopped_) {
        stopped_ = why;
    }
    if (dialing_) {
        dialing_->cancel();
    }
    if (upstream_) {
        upstream_->close();
    }
    client_->close();
}

asio::awaitable<void> ProxyConnection::run() {
    if (admittance_ == Admittance::kTooMany) {
        recording_ = true;
        began_at_ = Clock::now();
        Refusal full;
        full.reason = Reason::kTooManyConnections;
        full.detail = "The session has " + std::to_string(limits().connections_max) +
                      " connections to the proxy already.";
        Refusal refusal = charge().value_or(std::move(full));
        (void)co_await refuse(nullptr, std::move(refusal));
    } else {
        Next next = Next::kKeepAlive;
        while (next == Next::kKeepAlive && !stopped_) {
            next = co_await serve_one();
        }
    }
    watchdog_.arm(limits().goodbye_timeout);
    if (!stopped_ && tunnel_) {
        co_await client_->finish();
    }
    watchdog_.stop();
    client_->close();
}

asio::awaitable<Stream::Got> ProxyConnection::read_client() {
    const Stream::Got got = co_await client_->read_some(asio::buffer(client_buffer_));
    if (!got.error) {
        input_.append(client_buffer_.data(), got.bytes);
    }
    co_return got;
}

Refusal ProxyConnection::explain(Reason when_closed, Reason when_late, std::string detail) const {
    if (stopped_) {
        return {*stopped_, "The connection was ended from outside."};
    }
    return {watchdog_.expired() ? when_late : when_closed, std::move(detail)};
}

ProxyConnection::Step ProxyConnection::read_head(MessageReader& reader) {
    watchdog_.arm(input_.empty() ? limits().idle_timeout : limits().head_timeout);
    while (!reader.head_done()) {
        if (input_.empty()) {
            const bool first = !reader.fed();
            const Stream::Got got = co_await read_client();
            if (got.error) {
                const Reason late = first ? Reason::kIdleTimeout : Reason::kHeadTimeout;
                co_return explain(
                    Reason::kClientClosed, late, "The request did not arrive in time.");
            }
            if (first) {
                watchdog_.arm(limits().head_timeout);
            }
        }
        const auto used = reader.feed(input_);
        if (used.has_error()) {
            const bool large = used.error().code() == ErrorCode::kLimitExceeded;
            const Reason reason = large ? Reason::kHeadTooLarge : Reason::kMalformed;
            co_return Refusal{reason, used.error().message() + "."};
        }
        input_.erase(0, used.value());
    }
    co_return true;
}

/// One request of the minute's, whatever becomes of it: also for what is answered without having
/// been understood. A refusal if there is none left.
std::optional<Refusal> ProxyConnection::charge() {
    owner_->budget().count_request();
    if (owner_->budget().take_request(Clock::now())) {
        return std::nullopt;
    }
    return Refusal{
        Reason::kTooManyRequests,
        "The session has made " + std::to_string(limits().requests_per_minute_max) +
            " requests in the last minute."};
}

Allowed<ProxyRequest> ProxyConnection::admit(const MessageReader& reader) {
    record_.method = name_for_log(reader.head().method);
    client_is_1_1_ = reader.head().version_1_1;
    if (auto too_many = charge()) {
        return *std::move(too_many);
    }
    const Budget& budget = owner_->budget();
    auto request =
        tunnel_ ? read_inner_request(reader.head(), *tunnel_) : read_proxy_request(reader.head());
    if (request.has_error()) {
        return request;
    }
    const Authority& to = request.value().target;
    record_.target = to;
    if (!allows(owner_->policy(), to.host.text, to.port)) {
        return Refusal{
            Reason::kNotAllowed, to_string(to) + " is not in this session's network.allow."};
    }
    if (!budget.up_left()) {
        return Refusal{
            Reason::kBytesUpLimit,
            "The session has sent its " + std::to_string(limits().bytes_up_max) + " bytes."};
    }
    if (!budget.down_left()) {
        return Refusal{
            Reason::kBytesDownLimit,
            "The session has received its " + std::to_string(limits().bytes_down_max) + " bytes."};
    }
    target_ = to;
    return request;
}

asio::awaitable<ProxyConnection::Next> ProxyConnection::serve_one() {
    record_ = AccessRecord();
    recording_ = true;
    answered_ = false;
    upstream_.reset();
    mask_.reset();
    MessageReader reader(
        MessageReader::Kind::kRequest, limits().head_bytes_max, limits().headers_max);
    const auto head = co_await read_head(reader);
    began_at_ = Clock::now();
    if (head.has_error()) {
        const Reason reason = head.error().reason;
        if (reason == Reason::kClientClosed || reason == Reason::kIdleTimeout || stopped_) {
            recording_ = false;  // nothing was asked
            co_return Next::kClose;
        }
        Refusal refusal = charge().value_or(head.error());
        co_return co_await refuse(nullptr, std::move(refusal));
    }
    const auto request = admit(reader);
    if (request.has_error()) {
        co_return co_await refuse(&reader, request.error());
    }
    if (request.value().tunnel) {
        co_return co_await tunnel(request.value());
    }
    const Next next = co_await forward(reader, request.value());
    if (!tunnel_) {
        target_.reset();
    }
    co_return next;
}

/// reader: of the request that is refused, if its head was read.
asio::awaitable<ProxyConnection::Next> ProxyConnection::refuse(
    const MessageReader* reader, Refusal refusal) {
    // Whoever asks too often shall at least have to connect again.
    const bool keep = reader != nullptr && reader->done() && reader->keep_alive() && !answered_ &&
                      !stopped_ && !record_.method.empty() && record_.method != "CONNECT" &&
                      refusal.reason != Reason::kTooManyRequests;
    const Afterwards after = keep ? Afterwards::kKeepAlive : Afterwards::kClose;
    if (!answered_ && !stopped_) {
        record_.status = status_of(refusal.reason);
        const std::string text = to_http(refusal, record_.target, after, record_.method == "HEAD");
        answered_ = true;
        watchdog_.arm(limits().idle_timeout);
        const boost::system::error_code failed = co_await client_->write(text);
        if (failed) {
            finish_record(refusal.reason);
            co_return Next::kClose;
        }
    }
    finish_record(refusal.reason);
    if (upstream_) {
        upstream_->close();  // nothing is asked there any more
    }
    if (!tunnel_) {
        target_.reset();
    }
    if (keep) {
        co_return Next::kKeepAlive;
    }
    if (!stopped_) {
        co_await linger();
    }
    co_return Next::kClose;
}

/// Closing a socket with unread bytes sends a reset, which may overtake the answer.
asio::awaitable<void> ProxyConnection::linger() {
    if (tunnel_) {
        co_return;  // TLS says goodbye itself: run()
    }
    client_->end_sending();
    watchdog_.arm(limits().goodbye_timeout);
    std::size_t thrown_away = 0;
    while (thrown_away < kLingerBytesMax) {
        const Stream::Got got = co_await client_->read_some(asio::buffer(client_buffer_));
        if (got.error) {
            co_return;
        }
        thrown_away += got.bytes;
    }
}

void ProxyConnection::finish_record(Reason reason) {
    if (!std::exchange(recording_, false)) {
        return;
    }
    record_.session = owner_->session_id();
    record_.reason = reason;
    record_.duration =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began_at_);
    owner_->record(record_);
}

}  // namespace cellkeep::egress
