// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/dial/address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

namespace cellkeep::egress {

namespace {

struct Ipv4Block {
    std::uint32_t network;
    unsigned prefix;
    AddressKind kind;
};

constexpr std::uint32_t quad(unsigned a, unsigned b, unsigned c, unsigned d) {
    return (a << 24U) | (b << 16U) | (c << 8U) | d;
}

/// IANA IPv4 Special-Purpose Address Registry.
constexpr std::array kIpv4Blocks = {
    Ipv4Block{quad(0, 0, 0, 0), 8, AddressKind::kUnspecified},
    Ipv4Block{quad(10, 0, 0, 0), 8, AddressKind::kPrivate},
    Ipv4Block{quad(100, 64, 0, 0), 10, AddressKind::kPrivate},
    Ipv4Block{quad(127, 0, 0, 0), 8, AddressKind::kLoopback},
    Ipv4Block{quad(169, 254, 0, 0), 16, AddressKind::kLinkLocal},
    Ipv4Block{quad(172, 16, 0, 0), 12, AddressKind::kPrivate},
    Ipv4Block{quad(192, 0, 0, 0), 24, AddressKind::kReserved},
    Ipv4Block{quad(192, 0, 2, 0), 24, AddressKind::kReserved},
    Ipv4Block{quad(192, 31, 196, 0), 24, AddressKind::kReserved},
    Ipv4Block{quad(192, 52, 193, 0), 24, AddressKind::kReserved},
    Ipv4Block{quad(192, 88, 99, 0), 24, AddressKind::kReserved},
    Ipv4Block{quad(192, 168, 0, 0), 16, AddressKind::kPrivate},
    Ipv4Block{quad(192, 175, 48, 0), 24, AddressKind::kReserved},
    Ipv4Block{quad(198, 18, 0, 0), 15, AddressKind::kReserved},
    Ipv4Block{quad(198, 51, 100, 0), 24, AddressKind::kReserved},
    Ipv4Block{quad(203, 0, 113, 0), 24, AddressKind::kReserved},
    Ipv4Block{quad(224, 0, 0, 0), 4, AddressKind::kMulticast},
    Ipv4Block{quad(240, 0, 0, 0), 4, AddressKind::kReserved},
};

template <std::size_t Size>
bool same_bits(
    const std::array<unsigned char, Size>& left,
    const std::array<unsigned char, Size>& right,
    unsigned bits) {
    for (std::size_t i = 0; i < Size && bits > 0; ++i) {
        const unsigned here = std::min(bits, 8U);
        const unsigned mask = 0xFFU & ~(0xFFU >> here);
        if (((left[i] ^ right[i]) & mask) != 0U) {
            return false;
        }
        bits -= here;
    }
    return true;
}

/// Whether an IPv6 address lies in a block that is written as text here.
bool within(const Ipv6& address, const char* network, unsigned prefix) {
    const auto block = read_ipv6(network);
    return block && same_bits(address.to_bytes(), block->to_bytes(), prefix);
}

AddressKind classify_v4(const Ipv4& address) {
    const std::uint32_t value = address.to_uint();
    for (const Ipv4Block& block : kIpv4Blocks) {
        if (((value ^ block.network) >> (32U - block.prefix)) == 0) {
            return block.kind;
        }
    }
    return AddressKind::kPublic;
}

AddressKind classify_v6(const Ipv6& address) {
    if (address.is_unspecified()) {
        return AddressKind::kUnspecified;
    }
    if (address.is_loopback()) {
        return AddressKind::kLoopback;
    }
    if (embedded_ipv4(address)) {
        return AddressKind::kEmbedding;
    }
    if (within(address, "ff00::", 8)) {
        return AddressKind::kMulticast;
    }
    if (within(address, "fe80::", 10)) {
        return AddressKind::kLinkLocal;
    }
    if (within(address, "fc00::", 7) || within(address, "fec0::", 10)) {
        return AddressKind::kPrivate;
    }
    // Only 2000::/3 is allocated as global unicast; inside it, what the registry keeps back.
    const bool special = !within(address, "2000::", 3) || within(address, "2001::", 23) ||
                         within(address, "2001:db8::", 32) || within(address, "3fff::", 20) ||
                         within(address, "2620:4f:8000::", 48);
    return special ? AddressKind::kReserved : AddressKind::kPublic;
}

Ipv4 ipv4_at(const Ipv6::bytes_type& bytes, std::size_t offset) {
    Ipv4::bytes_type part{};
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), part.size(), part.begin());
    return Ipv4(part);
}

struct FreeInterfaces {
    void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

}  // namespace

std::optional<Ipv4> read_ipv4(std::string_view text) {
    Ipv4::bytes_type bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::size_t dot = text.find('.');
        const bool last = i + 1 == bytes.size();
        if (last != (dot == std::string_view::npos)) {
            return std::nullopt;
        }
        const std::string_view part = text.substr(0, dot);
        const char* end = part.data() + part.size();
        const auto [stop, failed] = std::from_chars(part.data(), end, bytes[i]);
        if (failed != std::errc() || stop != end || (part.size() > 1 && part.front() == '0')) {
            return std::nullopt;
        }
        text.remove_prefix(last ? text.size() : dot + 1);
    }
    return Ipv4(bytes);
}

std::optional<Ipv6> read_ipv6(std::string_view text) {
    if (text.size() >= INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos) {
        return std::nullopt;
    }
    Ipv6::bytes_type bytes{};
    if (::inet_pton(AF_INET6, std::string(text).c_str(), bytes.data()) != 1) {
        return std::nullopt;
    }
    return Ipv6(bytes);
}

std::optional<Ipv4> embedded_ipv4(const Ipv6& address) {
    const auto bytes = address.to_bytes();
    constexpr std::size_t kLast = 12;
    if (within(address, "::", 96) && !address.is_unspecified() && !address.is_loopback()) {
        return ipv4_at(bytes, kLast);
    }
    if (within(address, "::ffff:0:0", 96) || within(address, "::ffff:0:0:0", 96) ||
        within(address, "64:ff9b::", 96) || within(address, "64:ff9b:1::", 48)) {
        return ipv4_at(bytes, kLast);
    }
    if (within(address, "2002::", 16)) {
        return ipv4_at(bytes, 2);
    }
    if (within(address, "2001::", 32)) {
        Ipv4::bytes_type client = ipv4_at(bytes, kLast).to_bytes();
        for (unsigned char& byte : client) {
            byte = static_cast<unsigned char>(~byte);  // Teredo writes it inverted
        }
        return Ipv4(client);
    }
    const bool isatap =
        (bytes[8] & 0xFDU) == 0 && bytes[9] == 0 && bytes[10] == 0x5E && bytes[11] == 0xFE;
    if (isatap) {
        return ipv4_at(bytes, kLast);
    }
    return std::nullopt;
}

std::string_view to_string(AddressKind kind) {
    switch (kind) {
        case AddressKind::kPublic:
            return "public";
        case AddressKind::kUnspecified:
            return "unspecified";
        case AddressKind::kLoopback:
            return "loopback";
        case AddressKind::kPrivate:
            return "private";
        case AddressKind::kLinkLocal:
            return "link_local";
        case AddressKind::kMulticast:
            return "multicast";
        case AddressKind::kReserved:
            return "reserved";
        case AddressKind::kEmbedding:
            return "embedding_ipv4";
        case AddressKind::kOwn:
            return "own";
    }
    return "unknown";
}

AddressKind classify(const Address& address) {
    if (address.is_v4()) {
        return classify_v4(address.to_v4());
    }
    return address.to_v6().scope_id() != 0 ? AddressKind::kLinkLocal : classify_v6(address.to_v6());
}

bool AddressRange::contains(const Address& address) const {
    if (network.is_v4() != address.is_v4()) {
        return false;
    }
    return network.is_v4()
               ? same_bits(network.to_v4().to_bytes(), address.to_v4().to_bytes(), prefix)
               : same_bits(network.to_v6().to_bytes(), address.to_v6().to_bytes(), prefix);
}

Result<AddressRange> parse_address_range(std::string_view text) {
    const auto refuse = [text] {
        return Error(
            ErrorCode::kInvalidArgument,
            "\"" + std::string(text) + "\" is not an address or a network such as 10.1.0.0/16");
    };
    const std::size_t slash = text.find('/');
    AddressRange range;
    const std::string_view network = text.substr(0, slash);
    if (const auto v4 = read_ipv4(network)) {
        range = {Address(*v4), 32};
    } else if (const auto v6 = read_ipv6(network)) {
        range = {Address(*v6), 128};
    } else {
        return refuse();
    }
    if (slash != std::string_view::npos) {
        const std::string_view digits = text.substr(slash + 1);
        const unsigned most = range.prefix;
        const char* end = digits.data() + digits.size();
        const auto [stop, failed] = std::from_chars(digits.data(), end, range.prefix);
        if (failed != std::errc() || stop != end || range.prefix > most || range.prefix == 0) {
            return refuse();
        }
    }
    return range;
}

Result<std::vector<Address>> own_addresses() {
    ifaddrs* raw = nullptr;
    if (::getifaddrs(&raw) != 0) {
        return Error::from_errno(errno, "getifaddrs");
    }
    const std::unique_ptr<ifaddrs, FreeInterfaces> list(raw);
    std::vector<Address> found;
    for (const ifaddrs* one = list.get(); one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr) {
            continue;
        }
        if (one->ifa_addr->sa_family == AF_INET) {
            sockaddr_in address{};
            std::memcpy(&address, one->ifa_addr, sizeof address);
            found.emplace_back(Ipv4(ntohl(address.sin_addr.s_addr)));
        } else if (one->ifa_addr->sa_family == AF_INET6) {
            sockaddr_in6 address{};
            std::memcpy(&address, one->ifa_addr, sizeof address);
            Ipv6::bytes_type bytes{};
            std::memcpy(bytes.data(), &address.sin6_addr, bytes.size());
            found.emplace_back(Ipv6(bytes));
        }
    }
    return found;
}

AddressKind AddressRules::judge(const Address& address) const {
    const bool permitted =
        std::any_of(permitted_.begin(), permitted_.end(), [&](const AddressRange& range) {
            return range.contains(address);
        });
    if (permitted) {
        return AddressKind::kPublic;
    }
    const AddressKind kind = classify(address);
    const bool own = std::find(own_.begin(), own_.end(), address) != own_.end();
    return kind == AddressKind::kPublic && own ? AddressKind::kOwn : kind;
}

}  // namespace cellkeep::egress
