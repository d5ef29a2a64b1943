// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/connection/client_side.hpp"

#include "kernel-manager/egress/tls/tls_stream.hpp"

#include <sys/ioctl.h>

#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;

namespace {

/// What is still read and thrown away from a client that was refused while it sent.
constexpr std::size_t kLingerBytesMax = 1ULL << 20U;

}  // namespace

ClientSide::ClientSide(ConnectionState& state, SocketStream::Socket socket)
    : state_(state), stream_(std::make_unique<SocketStream>(std::move(socket))) {}

asio::awaitable<Stream::Got> ClientSide::read() {
    const Stream::Got got = co_await stream_->read_some(asio::buffer(buffer_));
    if (!got.error) {
        input_.append(buffer_.data(), got.bytes);
    }
    co_return got;
}

bool ClientSide::has_unread() const {
    int bytes = 0;
    return ::ioctl(stream_->handle(), FIONREAD, &bytes) == 0 && bytes > 0;
}

/// In the clear nothing has been taken of what comes while it waits: so the socket alone is the
/// whole connection then.
asio::awaitable<Stream::Got> ClientSide::read_first() {
    if (state_.tunnel) {
        state_.idle = true;
        const Stream::Got got = co_await read();
        state_.idle = false;
        co_return got;
    }
    auto& plain = static_cast<SocketStream&>(*stream_);
    Stream::Got got{asio::error::would_block, 0};
    while (got.error == asio::error::would_block) {
        state_.idle = true;
        const boost::system::error_code failed = co_await plain.wait_readable();
        state_.idle = false;
        got = failed ? Stream::Got{failed, 0} : plain.read_now(asio::buffer(buffer_));
    }
    if (!got.error) {
        input_.append(buffer_.data(), got.bytes);
    }
    co_return got;
}

Step ClientSide::read_head(MessageReader& reader) {
    Watchdog& watchdog = state_.watchdog;
    const ProxyLimits& limits = state_.limits();
    watchdog.arm(input_.empty() ? limits.idle_timeout : limits.head_timeout);
    while (!reader.head_done()) {
        if (input_.empty()) {
            const bool first = !reader.fed();
            Stream::Got got;
            if (first) {
                got = co_await read_first();
            } else {
                got = co_await read();
            }
            if (got.error) {
                const Reason late = first ? Reason::kIdleTimeout : Reason::kHeadTimeout;
                co_return state_.explain(
                    Reason::kClientClosed, late, "The request did not arrive in time.");
            }
            if (first) {
                watchdog.arm(limits.head_timeout);
            }
        }
        const auto used = reader.feed(input_);
        if (used.has_error()) {
            const bool large = used.error().code() == ErrorCode::kLimitExceeded;
            const Reason reason = large ? Reason::kHeadTooLarge : Reason::kMalformed;
            co_return EgressRefusal{reason, used.error().message() + "."};
        }
        input_.erase(0, used.value());
    }
    co_return true;
}

asio::awaitable<boost::system::error_code> ClientSide::accept_tls(
    std::shared_ptr<asio::ssl::context> context) {
    auto& plain = static_cast<SocketStream&>(*stream_);
    auto stream = std::make_unique<TlsStream>(plain.release(), std::move(context));
    TlsStream& secured = *stream;
    stream_ = std::move(stream);
    const std::string hello = std::exchange(input_, {});
    co_return co_await secured.accept(hello);
}

asio::awaitable<void> ClientSide::linger() {
    if (state_.tunnel) {
        co_return;  // TLS has a goodbye of its own
    }
    stream_->end_sending();
    state_.watchdog.arm(state_.limits().goodbye_timeout);
    std::size_t thrown_away = 0;
    while (thrown_away < kLingerBytesMax) {
        const Stream::Got got = co_await stream_->read_some(asio::buffer(buffer_));
        if (got.error) {
            co_return;
        }
        thrown_away += got.bytes;
    }
}

}  // namespace cellkeep::egress
