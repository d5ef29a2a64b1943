// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/listener.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace cellkeep::http {

namespace asio = boost::asio;

namespace {

constexpr std::string_view kUnixScheme = "unix:";

Result<ListenAddress> parse_unix_path(std::string_view path) {
    if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path) ||
        path.find('\0') != std::string_view::npos) {
        return Error(
            ErrorCode::kInvalidArgument,
            "\"unix:" + std::string(path) + "\" has no path that a socket can have",
            "A path of 1 to " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                " bytes, for example unix:/run/user/1000/cellkeep.sock.");
    }
    ListenAddress address;
    address.path = path;
    return address;
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
    if (text.substr(0, kUnixScheme.size()) == kUnixScheme) {
        return parse_unix_path(text.substr(kUnixScheme.size()));
    }
    const auto refuse = [text] {
        return Error(
            ErrorCode::kInvalidArgument,
            "\"" + std::string(text) + "\" is not HOST:PORT",
            "HOST is an IP address or localhost, for example 127.0.0.1:8888 or [::1]:8888; or "
            "unix:/PATH.");
    };
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        return refuse();
    }
    std::string_view host = text.substr(0, colon);
    const std::string_view port_text = text.substr(colon + 1);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) {
        host = host.substr(1, host.size() - 2);
    }
    ListenAddress address;
    const char* end = port_text.data() + port_text.size();
    const auto [stop, failed] = std::from_chars(port_text.data(), end, address.port);
    if (port_text.empty() || failed != std::errc() || stop != end) {
        return refuse();
    }
    address.host = host == "localhost" ? std::string("127.0.0.1") : std::string(host);
    boost::system::error_code error;
    const auto ip = asio::ip::make_address(address.host, error);
    if (error || ip.is_v6() != bracketed) {
        return refuse();
    }
    address.loopback = ip.is_loopback();
    return address;
}

std::string to_text(const ListenAddress& address) {
    if (!address.path.empty()) {
        return std::string(kUnixScheme) + address.path;
    }
    const bool is_v6 = address.host.find(':') != std::string::npos;
    return (is_v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

Result<ListenAddress> address_of(const UniqueFd& socket) {
    const auto refuse = [&socket](const std::string& why) {
        return Error(
            ErrorCode::kInvalidArgument,
            "descriptor " + std::to_string(socket.get()) + " is no socket to serve on: " + why);
    };
    int listens = 0;
    socklen_t bytes = sizeof listens;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0) {
        return refuse(Error::from_errno(errno, "getsockopt").message());
    }
    sockaddr_storage storage{};
    bytes = sizeof storage;
    auto* generic = reinterpret_cast<sockaddr*>(&storage);
    if (listens == 0 || ::getsockname(socket.get(), generic, &bytes) != 0) {
        return refuse("it does not listen");
    }
    if (storage.ss_family == AF_UNIX) {
        const std::string path = reinterpret_cast<const sockaddr_un*>(&storage)->sun_path;
        if (path.empty()) {
            return refuse("it has no path");
        }
        return parse_unix_path(path);
    }
    asio::ip::tcp::endpoint endpoint;
    if (storage.ss_family != AF_INET && storage.ss_family != AF_INET6) {
        return refuse("it is of another family");
    }
    std::memcpy(endpoint.data(), &storage, std::min<std::size_t>(bytes, endpoint.capacity()));
    ListenAddress address;
    address.host = endpoint.address().to_string();
    address.port = endpoint.port();
    address.loopback = endpoint.address().is_loopback();
    return address;
}

Status check_connection(const UniqueFd& socket) {
    int type = 0;
    int listens = 0;
    socklen_t bytes = sizeof type;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 ||
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0 ||
        type != SOCK_STREAM || listens != 0) {
        return Error(
            ErrorCode::kInvalidArgument,
            "descriptor " + std::to_string(socket.get()) + " is no connection");
    }
    return ok();
}

}  // namespace cellkeep::http
