// SPDX-License-Identifier: Apache-2.0
//
// Reads where a client wants to go, strictly: one spelling per place, so that what is compared with
// an allowlist is what is dialled. Everything that some library somewhere reads as another place is
// refused, never repaired, but for upper case. Pure functions; text is the guest's. Any thread.
#pragma once

#include "protocol/support/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace cellkeep::egress {

struct Host {
    std::string text;      // lower-case name, or address as inet_ntop(3) writes it, no brackets
    bool address = false;  // the text is an IPv4 or IPv6 address

    bool operator==(const Host&) const = default;
};

/// A name of LDH labels (RFC 5890, section 2.3.1; internationalised names as A-labels), a dotted
/// quad, or an IPv6 address in brackets. kInvalidArgument for user information, NUL and everything
/// else that is not printable ASCII, a trailing dot, empty labels, IPv4 in any other spelling
/// (decimal, octal, hexadecimal, fewer parts), zone identifiers, and IPv6 addresses that embed an
/// IPv4 address (mapped, compatible, NAT64, 6to4, Teredo).
Result<Host> parse_host(std::string_view text);

/// 1 to 65535, decimal digits without a leading zero.
Result<std::uint16_t> parse_port(std::string_view text);

/// A host with its port.
struct Authority {
    Host host;
    std::uint16_t port = 0;

    bool operator==(const Authority&) const = default;
};

/// "HOST:PORT"; without ":PORT" the port is default_port, or kInvalidArgument if that is 0.
Result<Authority> parse_authority(std::string_view text, std::uint16_t default_port);
/// "example.org:443", "[2001:db8::1]:443".
std::string to_string(const Authority& authority);
/// As the Host header of a request: without the port if it is default_port.
std::string host_header(const Authority& authority, std::uint16_t default_port);

/// A request target in absolute form (RFC 9112, section 3.2.2).
struct AbsoluteTarget {
    Authority authority;
    std::string origin;  // path and query: what goes to the server
};
/// "http://HOST[:PORT]/…" only: kInvalidArgument for another scheme, a fragment, user information.
Result<AbsoluteTarget> parse_absolute_target(std::string_view text);
/// A request target in origin form: "/…" of printable ASCII, without a fragment or backslash.
Status check_origin_target(std::string_view text);

}  // namespace cellkeep::egress
