// SPDX-License-Identifier: Apache-2.0
//
// The host that most tests of the proxy ask for: a name, the requests to it, what it answers.
#pragma once

#include "tests/unit/egress/proxy_fixture.hpp"

#include <cstdint>
#include <string>

namespace cellkeep::egress {

inline constexpr const char* kIndexHost = "index.example";
inline constexpr const char* kOkAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

inline std::string index_authority(std::uint16_t port) {
    return std::string(kIndexHost) + ":" + std::to_string(port);
}

inline std::string index_authority(const FakeServer& server) {
    return index_authority(server.port());
}

inline std::string get_request(const std::string& authority, const std::string& fields = "") {
    return "GET http://" + authority + "/ HTTP/1.1\r\nHost: " + authority + "\r\n" + fields +
           "\r\n";
}

inline void resolve_to_loopback(ProxyFixture& fixture, const std::string& name = kIndexHost) {
    fixture.resolver().answers[name] = {{boost::asio::ip::make_address("127.0.0.1")}};
}

}  // namespace cellkeep::egress
