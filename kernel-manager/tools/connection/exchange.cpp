// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/connection/exchange.hpp"

#include "kernel-manager/egress/tls/tls_stream.hpp"
#include "kernel-manager/tools/limits.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include <utility>

namespace cellkeep::tools {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kLookupsMax = 4;
constexpr std::chrono::milliseconds kLookupPatience{10'000};

Error unreachable(const std::string& why) {
    return {ErrorCode::kUnavailable, why};
}

}  // namespace

Exchange::Exchange(asio::io_context& io, std::shared_ptr<egress::Resolver> resolver)
    : io_(io), resolver_(std::move(resolver)), watchdog_(io.get_executor()), piece_(kPieceBytes) {
    watchdog_.on_expiry([this] { end(); });
}

void Exchange::set_deadline(std::chrono::milliseconds patience) {
    watchdog_.arm(patience);
}

void Exchange::end() {
    stopped_ = true;
    if (connecting_) {
        boost::system::error_code ignored;  // Ignored: it is given up either way.
        (void)connecting_->close(ignored);
    }
    if (stream_) {
        stream_->close();
    }
}

asio::awaitable<Result<std::vector<egress::Address>>> Exchange::find(egress::Host host) {
    if (host.address) {
        boost::system::error_code failed;
        std::vector<egress::Address> one{asio::ip::make_address(host.text, failed)};
        if (failed) {
            co_return unreachable("the address cannot be read");
        }
        co_return one;
    }
    std::string name = host.text;
    auto account = std::make_shared<egress::LookupAccount>(kLookupsMax);
    auto found = co_await resolver_->resolve(std::move(name), kLookupPatience, std::move(account));
    if (found.has_error()) {
        co_return unreachable("the host's address was not found");
    }
    co_return std::move(found).value();
}

asio::awaitable<Status> Exchange::connect(std::vector<egress::Address> found, To to) {
    for (const egress::Address& address : found) {
        if (stopped_) {
            break;
        }
        connecting_ = std::make_unique<asio::ip::tcp::socket>(io_);
        const asio::ip::tcp::endpoint endpoint(address, to.authority.port);
        auto [failed] = co_await connecting_->async_connect(endpoint, kAwait);
        if (!failed && !stopped_) {
            break;
        }
        connecting_.reset();
    }
    const auto socket = std::exchange(connecting_, nullptr);
    if (!socket || stopped_) {
        co_return unreachable("no connection to " + to_string(to.authority));
    }
    if (!to.tls) {
        stream_ = std::make_unique<egress::SocketStream>(std::move(*socket));
        co_return ok();
    }
    auto secured = std::make_unique<egress::TlsStream>(std::move(*socket), to.tls);
    egress::TlsStream& stream = *secured;
    stream_ = std::move(secured);
    egress::Host host = to.authority.host;
    const boost::system::error_code refused = co_await stream.connect(std::move(host));
    if (refused) {
        co_return unreachable(
            "no TLS connection with a certificate that is valid for " + to.authority.host.text);
    }
    co_return ok();
}

asio::awaitable<Status> Exchange::open(To to) {
    egress::Host host = to.authority.host;
    BOOST_OUTCOME_CO_TRY(auto found, co_await find(std::move(host)));
    co_return co_await connect(std::move(found), std::move(to));
}

asio::awaitable<Status> Exchange::send(const std::string& text) {
    const boost::system::error_code failed = co_await stream_->write(text);
    if (failed) {
        co_return unreachable("the request could not be sent");
    }
    co_return ok();
}

asio::awaitable<Status> Exchange::read_more() {
    const egress::Stream::Got got = co_await stream_->read_some(asio::buffer(piece_));
    if (got.error == asio::error::eof) {
        ended_ = true;
        co_return reader_.end();
    }
    if (got.error) {
        co_return unreachable("the connection broke");
    }
    received_ += got.bytes;
    if (received_ > kServerMessageBytesMax) {
        co_return Error(
            ErrorCode::kLimitExceeded,
            "the answer has more than " + std::to_string(kServerMessageBytesMax) + " bytes");
    }
    const auto used = reader_.feed({piece_.data(), got.bytes});
    if (used.has_error()) {
        co_return used.error();
    }
    co_return ok();
}

asio::awaitable<Status> Exchange::read_head() {
    while (!reader_.head_done()) {
        if (ended_) {
            co_return unreachable("the connection ended before the answer");
        }
        BOOST_OUTCOME_CO_TRY(co_await read_more());
    }
    co_return ok();
}

asio::awaitable<Result<std::string>> Exchange::read_body() {
    std::string body = reader_.take_body();
    if (body.empty() && !done()) {
        BOOST_OUTCOME_CO_TRY(co_await read_more());
        body = reader_.take_body();
    }
    co_return body;
}

}  // namespace cellkeep::tools
