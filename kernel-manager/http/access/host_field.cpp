// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/access/host_field.hpp"

#include "kernel-manager/http/access/origin.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace cellkeep::http {

namespace {

/// RFC 3986, section 3.2.3: digits, or nothing behind the colon.
bool is_port(std::string_view text) {
    std::uint16_t port = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, port);
    return text.empty() || (failed == std::errc() && stop == end);
}

bool is_in_address(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' ||
           c == '.';
}

/// RFC 3986, section 3.2.2: unreserved, percent codes and sub-delimiters, without the comma, which
/// joins fields.
bool is_in_name(char c) {
    static constexpr std::string_view kOthers = "-._~%!$&'()*+;=";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != std::string_view::npos;
}

bool has_only(std::string_view text, bool (*allowed)(char)) {
    return std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace

std::optional<std::string_view> host_of(std::string_view field) {
    std::size_t end = std::min(field.find(':'), field.size());
    if (field.starts_with('[')) {
        const std::size_t bracket = field.find(']');
        if (bracket == std::string_view::npos || bracket < 3 ||
            !has_only(field.substr(1, bracket - 1), is_in_address)) {
            return std::nullopt;
        }
        end = bracket + 1;
    } else if (!has_only(field.substr(0, end), is_in_name)) {
        return std::nullopt;
    }
    const std::string_view rest = field.substr(end);
    if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) {
        return std::nullopt;
    }
    return field.substr(0, end);
}

std::optional<SandboxHost> split_sandbox_host(std::string_view host) {
    const std::size_t dash = host.find('-');
    const std::size_t dot = host.find('.');
    if (dash == std::string_view::npos || dot == std::string_view::npos || dot < dash + 2 ||
        dot + 1 == host.size() || host.starts_with('0')) {
        return std::nullopt;
    }
    SandboxHost parts{0, host.substr(dash + 1, dot - dash - 1), host.substr(dot + 1)};
    const char* end = host.data() + dash;
    const auto [stop, failed] = std::from_chars(host.data(), end, parts.port);
    const bool plain = has_only(parts.id, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
    if (failed != std::errc() || stop != end || !plain) {
        return std::nullopt;
    }
    return parts;
}

std::optional<std::string> host_fault(const Headers& headers, std::string_view authority) {
    const auto& fields = headers.all();
    const auto count = std::count_if(fields.begin(), fields.end(), [](const auto& field) {
        return equals_ignoring_case(field.first, "Host");
    });
    if (count > 1) {
        return "The request has more than one Host field.";
    }
    const std::string_view host = headers.get("Host");
    if (!host_of(host)) {
        return "The Host field is not HOST or HOST:PORT.";
    }
    const bool same = equals_ignoring_case(authority, host) ||
                      is_own_origin("http://" + std::string(authority), host) ||
                      is_own_origin("https://" + std::string(authority), host);
    if (!authority.empty() && !same) {
        return "The request's target names another host than its Host field.";
    }
    return std::nullopt;
}

}  // namespace cellkeep::http
