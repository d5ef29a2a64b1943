// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/client_stream.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <sys/un.h>

#include <charconv>
#include <cstdint>

namespace cellkeep::http {

namespace asio = boost::asio;
namespace beast = boost::beast;

std::string text_of(const ServerAddress& server) {
    if (!server.socket_path.empty()) {
        return "unix:" + server.socket_path;
    }
    return (server.tls ? "https://" : "http://") + server.host + ":" + server.port;
}

Error client_error(const boost::system::error_code& error, const ServerAddress& server) {
    if (error == beast::error::timeout) {
        return {ErrorCode::kTimeout, text_of(server) + ": no answer in time"};
    }
    return {ErrorCode::kUnavailable, text_of(server) + ": " + error.message()};
}

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

}  // namespace cellkeep::http
