// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/target.hpp"

#include "kernel-manager/egress/dial/address.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <charconv>

namespace cellkeep::egress {

namespace {

constexpr std::size_t kLabelBytesMax = 63;  // RFC 1035, section 2.3.4
constexpr std::string_view kHttpScheme = "http://";

Error refuse(const std::string& why) {
    return {ErrorCode::kInvalidArgument, why};
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_letter(char c) {
    return c >= 'a' && c <= 'z';
}

char to_lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string to_lower(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return to_lower(c); });
    return lower;
}

bool is_visible(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7F'; });
}

/// What the C library and browsers read as the last part of an IPv4 address in some spelling (URL
/// Standard, "ends in a number"; inet_aton(3)): digits, or 0x and hexadecimal digits.
bool is_number(std::string_view label) {
    if (std::all_of(label.begin(), label.end(), is_digit)) {
        return true;
    }
    return label.starts_with("0x") &&
           label.find_first_not_of("0123456789abcdef", 2) == std::string_view::npos;
}

Status check_label(std::string_view label) {
    if (label.empty()) {
        return refuse("the host has an empty label");
    }
    if (label.size() > kLabelBytesMax) {
        return refuse("the host has a label of more than 63 characters");
    }
    if (label.front() == '-' || label.back() == '-') {
        return refuse("a label of the host begins or ends with a hyphen");
    }
    const bool plain = std::all_of(
        label.begin(), label.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '-'; });
    if (!plain) {
        return refuse("the host may consist of letters, digits, hyphens and dots only");
    }
    return ok();
}

Result<Host> parse_ipv6(std::string_view text) {
    if (text.find('%') != std::string_view::npos) {
        return refuse("an address with a zone identifier is refused");
    }
    const auto address = read_ipv6(text);
    if (!address) {
        return refuse("the host in brackets is not an IPv6 address");
    }
    if (embedded_ipv4(*address)) {
        return refuse("an IPv6 address that embeds an IPv4 address is refused");
    }
    return Host{address->to_string(), true};
}

Result<Host> parse_ipv4(const std::string& text) {
    const auto address = read_ipv4(text);
    if (!address) {
        return refuse(
            "a host that ends in a number must be an IPv4 address of four decimal numbers without "
            "leading zeros");
    }
    return Host{address->to_string(), true};
}

}  // namespace

Result<Host> parse_host(std::string_view text) {
    if (text.empty()) {
        return refuse("the host is missing");
    }
    if (text.find('@') != std::string_view::npos) {
        return refuse("user information before the host is refused");
    }
    if (!is_visible(text)) {
        return refuse(
            "the host has characters that are not printable ASCII; write names as A-labels");
    }
    if (text.front() == '[') {
        if (text.size() < 3 || text.back() != ']') {
            return refuse("the bracket before the host is not closed behind it");
        }
        return parse_ipv6(text.substr(1, text.size() - 2));
    }
    if (text.size() > limits::kEgressHostBytesMax) {
        return refuse(
            "the host is longer than " + std::to_string(limits::kEgressHostBytesMax) +
            " characters");
    }
    if (text.back() == '.') {
        return refuse("a dot behind the host is refused");
    }
    const std::string name = to_lower(text);
    std::string_view rest = name;
    std::string_view label;
    while (true) {
        const std::size_t dot = rest.find('.');
        label = rest.substr(0, dot);
        BOOST_OUTCOME_TRY(check_label(label));
        if (dot == std::string_view::npos) {
            break;
        }
        rest.remove_prefix(dot + 1);
    }
    if (is_number(label)) {
        return parse_ipv4(name);
    }
    return Host{name, false};
}

Result<std::uint16_t> parse_port(std::string_view text) {
    std::uint16_t port = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, port);
    if (failed != std::errc() || stop != end || port == 0 || text.front() == '0') {
        return refuse("the port is not a number from 1 to 65535");
    }
    return port;
}

Result<Authority> parse_authority(std::string_view text, std::uint16_t default_port) {
    const std::size_t bracket = text.rfind(']');
    const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
    if (colon == std::string_view::npos) {
        if (default_port == 0) {
            return refuse("the port is missing");
        }
        BOOST_OUTCOME_TRY(Host host, parse_host(text));
        return Authority{std::move(host), default_port};
    }
    // The user information first: "a:b@c" has its colon there.
    BOOST_OUTCOME_TRY(Host host, parse_host(text.substr(0, colon)));
    BOOST_OUTCOME_TRY(const std::uint16_t port, parse_port(text.substr(colon + 1)));
    return Authority{std::move(host), port};
}

std::string host_header(const Authority& authority, std::uint16_t default_port) {
    const bool brackets = authority.host.text.find(':') != std::string::npos;
    const std::string host = brackets ? "[" + authority.host.text + "]" : authority.host.text;
    return authority.port == default_port ? host : host + ":" + std::to_string(authority.port);
}

std::string to_string(const Authority& authority) {
    return host_header(authority, 0);
}

Status check_origin_target(std::string_view text) {
    if (text.empty() || text.front() != '/') {
        return refuse("the target does not begin with a slash");
    }
    if (!is_visible(text) || text.find_first_of("#\\") != std::string_view::npos) {
        return refuse("the target has a character that no URL has");
    }
    return ok();
}

Result<AbsoluteTarget> parse_absolute_target(std::string_view text) {
    if (to_lower(text.substr(0, kHttpScheme.size())) != kHttpScheme) {
        return refuse("the target is not an http:// URL; for https use CONNECT");
    }
    text.remove_prefix(kHttpScheme.size());
    const std::size_t end = text.find_first_of("/?#\\");
    AbsoluteTarget target;
    BOOST_OUTCOME_TRY(target.authority, parse_authority(text.substr(0, end), 80));
    const std::string_view rest =
        end == std::string_view::npos ? std::string_view() : text.substr(end);
    target.origin = rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest);
    BOOST_OUTCOME_TRY(check_origin_target(target.origin));
    return target;
}

}  // namespace cellkeep::egress
