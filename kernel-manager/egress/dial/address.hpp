// SPDX-License-Identifier: Apache-2.0
//
// Which addresses a session may be connected to: public ones. Reads addresses in their one strict
// spelling and says of each what it is. What an operator permits besides is explicit. Pure, but for
// own_addresses(). Any thread.
#pragma once

#include "protocol/support/result.hpp"

#include <boost/asio/ip/address.hpp>

#include <optional>
#include <string_view>
#include <vector>

namespace cellkeep::egress {

using Address = boost::asio::ip::address;
using Ipv4 = boost::asio::ip::address_v4;
using Ipv6 = boost::asio::ip::address_v6;

/// Four decimal numbers without leading zeros.
std::optional<Ipv4> read_ipv4(std::string_view text);
/// As inet_pton(3), without a zone.
std::optional<Ipv6> read_ipv6(std::string_view text);

/// The IPv4 address that an IPv6 address stands for: mapped and compatible (RFC 4291, section
/// 2.5.5), NAT64 (RFC 6052, RFC 8215), 6to4 (RFC 3056), Teredo (RFC 4380), ISATAP (RFC 5214).
std::optional<Ipv4> embedded_ipv4(const Ipv6& address);

/// What an address is, by the special-purpose registries (RFC 6890 and its successors). An IPv6
/// address that embeds an IPv4 address is never public, whatever that is.
enum class AddressKind {
    kPublic,
    kUnspecified,
    kLoopback,
    kPrivate,    // and shared (RFC 6598), unique local (RFC 4193), site-local
    kLinkLocal,  // where metadata services live
    kMulticast,
    kReserved,  // documentation, benchmarking, protocol assignments, future use, broadcast
    kEmbedding,
    kOwn,  // of this host
};

/// "public", "loopback" …, for logs and refusals.
std::string_view to_string(AddressKind kind);

/// Without regard to this host's own addresses.
AddressKind classify(const Address& address);

/// One address or a network, "127.0.0.1", "10.1.0.0/16", "fd00:1::/32".
struct AddressRange {
    Address network;
    unsigned prefix = 0;

    bool contains(const Address& address) const;
};
Result<AddressRange> parse_address_range(std::string_view text);

/// The addresses of this host's interfaces, now (getifaddrs(3)).
Result<std::vector<Address>> own_addresses();

/// Decides about addresses: public and not this host's, or permitted by the operator.
class AddressRules {
 public:
    AddressRules() = default;
    AddressRules(std::vector<AddressRange> permitted, std::vector<Address> own)
        : permitted_(std::move(permitted)), own_(std::move(own)) {}

    /// kPublic: may be dialled, because it is public or permitted. Else what it is.
    AddressKind judge(const Address& address) const;

 private:
    std::vector<AddressRange> permitted_;
    std::vector<Address> own_;
};

}  // namespace cellkeep::egress
