// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/client_stream.hpp"

#include "protocol/support/await.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/this_coro.hpp>

#include <sys/un.h>

#include <charconv>
#include <cstdint>
#include <utility>

namespace cellkeep::http {

namespace asio = boost::asio;

namespace {

std::string text_of(const ServerAddress& server) {
    if (!server.socket_path.empty()) {
        return "unix:" + server.socket_path;
    }
    return (server.tls ? "https://" : "http://") + server.host + ":" + server.port;
}

/// A type of its own: Asio makes an endpoint of anything that has an address.
struct Place {
    asio::generic::stream_protocol::endpoint endpoint;
};

Result<Place> endpoint_of(const ServerAddress& server) {
    if (!server.socket_path.empty()) {
        if (server.socket_path.size() >= sizeof(sockaddr_un::sun_path)) {
            return Error(
                ErrorCode::kInvalidArgument, text_of(server) + ": the socket's path is too long");
        }
        return Place{asio::local::stream_protocol::endpoint(server.socket_path)};
    }
    boost::system::error_code error;
    const auto address = asio::ip::make_address(server.host, error);
    std::uint16_t port = 0;
    const char* end = server.port.data() + server.port.size();
    const auto [stop, failed] = std::from_chars(server.port.data(), end, port);
    if (error || failed != std::errc() || stop != end || port == 0) {
        return Error(ErrorCode::kInvalidArgument, text_of(server) + " is not ADDRESS:PORT");
    }
    return Place{asio::ip::tcp::endpoint(address, port)};
}

}  // namespace

Status check_address(const ServerAddress& server) {
    BOOST_OUTCOME_TRY(endpoint_of(server));
    return ok();
}

ClientStream::ClientStream(const ServerAddress& server, const asio::any_io_executor& executor)
    : server_(server),
      deadline_(executor),
      bytes_(
          ByteStream::Socket(executor),
          ByteStream::Peer{},
          server.tls ? TlsContext::for_client() : nullptr) {}

asio::awaitable<Result<std::shared_ptr<ClientStream>>> ClientStream::open(
    const ServerAddress& server, std::chrono::milliseconds patience) {
    const auto executor = co_await asio::this_coro::executor;
    const std::shared_ptr<ClientStream> stream(new ClientStream(server, executor));
    stream->self_ = stream;
    stream->expires_after(patience);
    const Status connected = co_await stream->connect();
    if (connected.has_error()) {
        co_return connected.error();
    }
    co_return stream;
}

/// The token leaves only after the server has shown its own certificate. The server wrote that
/// certificate's digest into its private state directory: this says more than a chain to a
/// certificate authority, and works for a certificate that no authority signed.
asio::awaitable<Status> ClientStream::connect() {
    const auto place = endpoint_of(server_);
    if (place.has_error()) {
        co_return place.error();
    }
    const boost::system::error_code refused = co_await bytes_.connect(place.value().endpoint);
    if (refused) {
        co_return error(refused);
    }
    const boost::system::error_code no_tls = co_await bytes_.open();
    if (no_tls) {
        co_return error(no_tls);
    }
    if (server_.tls && bytes_.peer_certificate_sha256() != server_.certificate_sha256) {
        co_return Error(
            ErrorCode::kUnavailable,
            text_of(server_) +
                " shows another certificate than the one that the server started with");
    }
    co_return ok();
}

void ClientStream::expires_after(std::chrono::milliseconds time) {
    deadline_.expires_after(time);
    deadline_.async_wait([weak = self_](const boost::system::error_code& cancelled) {
        const auto stream = weak.lock();
        if (!cancelled && stream) {
            stream->expired_ = true;
            stream->bytes_.close();
        }
    });
}

Error ClientStream::error(const boost::system::error_code& error) const {
    if (expired_) {
        return {ErrorCode::kTimeout, text_of(server_) + ": no answer in time"};
    }
    return {ErrorCode::kUnavailable, text_of(server_) + ": " + error.message()};
}

}  // namespace cellkeep::http
