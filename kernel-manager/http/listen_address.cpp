// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/listener.hpp"

#include <boost/asio/ip/address.hpp>

#include <sys/un.h>

#include <charconv>

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

}  // namespace cellkeep::http
