// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/redirect.hpp"

#include "kernel-manager/http/access/host_field.hpp"
#include "kernel-manager/http/message/headers.hpp"

#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/address_v6.hpp>

#include <algorithm>
#include <vector>

namespace cellkeep::preview {

namespace asio = boost::asio;

namespace {

using http::equals_ignoring_case;

/// Without control characters and without backslashes, which browsers take for slashes.
bool is_plain(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte > 0x20 && byte != 0x7f && c != '\\';
    });
}

/// RFC 3986, section 3.1; empty: the text has none.
std::string_view scheme_of(std::string_view text) {
    const std::size_t colon = text.find(':');
    const bool named = colon != std::string_view::npos && colon > 0 &&
                       std::all_of(text.begin(), text.begin() + colon, [](char c) {
                           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                  (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
                       });
    return named ? text.substr(0, colon) : std::string_view();
}

struct HostPort {
    std::string_view host;
    std::string_view port;
};

std::optional<HostPort> split_authority(std::string_view authority, std::string_view scheme) {
    const auto host = http::host_of(authority);
    if (!host) {
        return std::nullopt;
    }
    HostPort parts{*host, equals_ignoring_case(scheme, "https") ? "443" : "80"};
    if (authority.size() > host->size() + 1) {
        parts.port = authority.substr(host->size() + 1);
    }
    return parts;
}

/// The URL standard's "ends in a number": browsers read such a host as an IPv4 address, in more
/// spellings than others do.
bool ends_in_number(std::string_view host) {
    if (host.ends_with('.')) {
        host.remove_suffix(1);
    }
    const std::string_view last = host.substr(host.rfind('.') + 1);
    const bool digits =
        std::all_of(last.begin(), last.end(), [](char c) { return c >= '0' && c <= '9'; });
    return !last.empty() && (digits || equals_ignoring_case(last.substr(0, 2), "0x"));
}

/// A host that clients may read in different ways: percent codes, addresses in rare spellings.
bool is_ambiguous(std::string_view host) {
    if (host.find('%') != std::string_view::npos) {
        return true;
    }
    boost::system::error_code failed;
    if (host.starts_with('[')) {
        (void)asio::ip::make_address_v6(std::string(host.substr(1, host.size() - 2)), failed);
        return failed.failed();
    }
    if (ends_in_number(host)) {
        (void)asio::ip::make_address_v4(std::string(host), failed);  // four decimal numbers
        return failed.failed();
    }
    return false;
}

bool is_loopback(std::string_view host) {
    if (equals_ignoring_case(host, "localhost") || equals_ignoring_case(host, "localhost.")) {
        return true;
    }
    boost::system::error_code failed;
    if (!host.starts_with('[')) {
        const auto address = asio::ip::make_address_v4(std::string(host), failed);
        return !failed && (address.is_loopback() || address.is_unspecified());
    }
    const auto address =
        asio::ip::make_address_v6(std::string(host.substr(1, host.size() - 2)), failed);
    return !failed && (address.is_loopback() || address.is_unspecified() || address.is_v4_mapped());
}

bool is_same_host(const HostPort& one, const HostPort& other) {
    return one.port == other.port && equals_ignoring_case(one.host, other.host);
}

/// Whether a host below one of this server's names leads to another session, or to this server.
bool is_host_of_others(std::string_view host, const http::SandboxHost& here) {
    const auto there = http::split_sandbox_host(host);
    return there && !equals_ignoring_case(there->id, here.id) &&
           (equals_ignoring_case(there->name, here.name) || is_loopback(there->name));
}

/// Whether the authority is one of this server's own, whatever else it may be called.
bool is_own_server(const HostPort& to, const HostPort& here) {
    if (to.port != here.port) {
        return false;
    }
    const auto sandbox = http::split_sandbox_host(here.host);
    if (!sandbox) {
        return is_loopback(to.host) || equals_ignoring_case(to.host, here.host);
    }
    return is_loopback(to.host) || equals_ignoring_case(to.host, sandbox->name) ||
           is_host_of_others(to.host, *sandbox);
}

struct PathRest {
    std::string_view path;
    std::string_view rest;  // query and fragment
};

PathRest split_path(std::string_view text) {
    const std::size_t end = std::min(text.find_first_of("?#"), text.size());
    return {text.substr(0, end), text.substr(end)};
}

std::string within(const PreviewPlace& place, std::string_view path, std::string_view rest) {
    return place.prefix + remove_dot_segments(path) + std::string(rest);
}

std::optional<std::string> rewrite_absolute(
    std::string_view location,
    std::string_view scheme,
    std::string_view behind,
    const PreviewPlace& place,
    std::string_view host_field) {
    const std::size_t end = std::min(behind.find_first_of("/?#"), behind.size());
    const auto to = split_authority(behind.substr(0, end), scheme);
    const auto here = split_authority(host_field, scheme);
    if (!to || !here || is_ambiguous(to->host)) {
        return std::nullopt;
    }
    if (place.own_host && is_same_host(*to, *here)) {
        return std::string(location);
    }
    if (!place.own_host && is_loopback(to->host) && to->port == std::to_string(place.port)) {
        const auto [path, rest] = split_path(behind.substr(end));
        return within(place, path.empty() ? "/" : path, rest);
    }
    // A client may send its token along, wherever a redirect leads it.
    if (place.bears_token || is_own_server(*to, *here)) {
        return std::nullopt;
    }
    return std::string(location);
}

std::optional<std::string> rewrite_path(std::string_view location, const PreviewPlace& place) {
    if (place.own_host) {
        return std::string(location);  // it stays at the host, which is the server inside's own
    }
    const auto [path, rest] = split_path(location);
    if (path.starts_with('/')) {
        return within(place, path, rest);
    }
    const std::string_view here = split_path(place.target).path;
    if (path.empty()) {
        return within(place, here, rest);
    }
    return within(
        place, std::string(here.substr(0, here.rfind('/') + 1)) + std::string(path), rest);
}

bool is_dot(std::string_view segment, std::size_t dots) {
    std::size_t found = 0;
    while (!segment.empty()) {
        const bool coded = equals_ignoring_case(segment.substr(0, 3), "%2e");
        if (!coded && segment.front() != '.') {
            return false;
        }
        segment.remove_prefix(coded ? 3 : 1);
        ++found;
    }
    return found == dots;
}

}  // namespace

std::string remove_dot_segments(std::string_view path) {
    std::vector<std::string_view> kept;
    bool ends_open = false;  // behind the last one comes a slash
    while (!path.empty()) {
        path.remove_prefix(1);  // the slash
        const std::size_t slash = std::min(path.find('/'), path.size());
        const std::string_view segment = path.substr(0, slash);
        path.remove_prefix(slash);
        ends_open = is_dot(segment, 1) || is_dot(segment, 2);
        if (is_dot(segment, 2)) {
            if (!kept.empty()) {
                kept.pop_back();
            }
        } else if (!is_dot(segment, 1)) {
            kept.push_back(segment);
        }
    }
    std::string out;
    for (const std::string_view segment : kept) {
        out += "/" + std::string(segment);
    }
    return ends_open || out.empty() ? out + "/" : out;
}

std::optional<std::string> rewrite_location(
    std::string_view location, const PreviewPlace& place, std::string_view host) {
    if (!is_plain(location)) {
        return std::nullopt;
    }
    if (location.starts_with("//")) {
        return rewrite_absolute(location, "http", location.substr(2), place, host);
    }
    const std::string_view scheme = scheme_of(location);
    if (scheme.empty()) {
        return rewrite_path(location, place);
    }
    if (!equals_ignoring_case(scheme, "http") && !equals_ignoring_case(scheme, "https")) {
        return place.bears_token ? std::nullopt : std::optional(std::string(location));
    }
    const std::string_view behind = location.substr(scheme.size() + 1);
    if (!behind.starts_with("//")) {
        return std::nullopt;  // browsers take it for a path of this host
    }
    return rewrite_absolute(location, scheme, behind.substr(2), place, host);
}

}  // namespace cellkeep::preview
