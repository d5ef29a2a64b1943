// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/message/proxy_request.hpp"

#include "kernel-manager/egress/network_policy.hpp"
#include "protocol/support/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace cellkeep::egress {

namespace {

constexpr std::array<std::string_view, 7> kMethods = {
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
constexpr std::string_view kTunnelMethod = "CONNECT";

/// RFC 9110, section 7.6.1; Proxy-Connection and Keep-Alive by custom. Framing and Expect are this
/// proxy's own affair on either side, and X-Cellkeep-Deny is no server's to say.
constexpr std::array<std::string_view, 14> kOneConnection = {
    "Connection",
    "Proxy-Connection",
    "Keep-Alive",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "Proxy-Authentication-Info",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Content-Length",
    "Upgrade",
    "Expect",
    "HTTP2-Settings",
    "X-Cellkeep-Deny"};

/// The fields that Connection names.
std::vector<std::string> named_by_connection(const MessageHead& head) {
    std::vector<std::string> names;
    for (std::string_view list : values_of(head, "Connection")) {
        while (!list.empty()) {
            const std::size_t comma = list.find(',');
            names.emplace_back(trim(list.substr(0, comma)));
            list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
        }
    }
    return names;
}

template <typename Names>
bool is_among(const Names& names, std::string_view name) {
    return std::any_of(
        names.begin(), names.end(), [name](const auto& one) { return same_name(one, name); });
}

/// At most one Host, exactly one from HTTP/1.1 on (RFC 9112, section 3.2), and the target's.
Allowed<bool> check_host(
    const MessageHead& head, const Authority& target, std::uint16_t default_port) {
    const auto hosts = values_of(head, "Host");
    if (hosts.size() > 1 || (hosts.empty() && head.version_1_1)) {
        return EgressRefusal{Reason::kMalformed, "The request must have exactly one Host."};
    }
    if (hosts.empty()) {
        return true;
    }
    const auto host = parse_authority(hosts.front(), default_port);
    if (host.has_error() || host.value() != target) {
        return EgressRefusal{
            Reason::kHostMismatch, "Host is not the target, " + to_string(target) + "."};
    }
    return true;
}

Allowed<bool> check_method(const MessageHead& head) {
    if (!is_passed_on(head.method)) {
        return EgressRefusal{Reason::kMethodRefused, "The method is not passed on."};
    }
    return true;
}

std::string field_line(std::string_view name, std::string_view value) {
    return std::string(name) + ": " + std::string(value) + "\r\n";
}

std::string framing_line(const Framing& framing) {
    switch (framing.kind) {
        case Framing::Kind::kLength:
            return field_line("Content-Length", std::to_string(framing.length));
        case Framing::Kind::kChunked:
            return field_line("Transfer-Encoding", "chunked");
        case Framing::Kind::kNone:
        case Framing::Kind::kUntilClose:
            return {};
    }
    return {};
}

Allowed<ProxyRequest> read_tunnel(const MessageHead& head) {
    auto target = parse_authority(head.target, 0);
    if (target.has_error()) {
        return EgressRefusal{Reason::kBadTarget, "CONNECT: " + target.error().message() + "."};
    }
    if (!values_of(head, "Content-Length").empty() ||
        !values_of(head, "Transfer-Encoding").empty()) {
        return EgressRefusal{Reason::kMalformed, "CONNECT has no body."};
    }
    if (!values_of(head, "Host").empty()) {
        BOOST_OUTCOME_TRY(check_host(head, target.value(), target.value().port));
    }
    ProxyRequest request;
    request.tunnel = true;
    request.method = head.method;
    request.target = std::move(target).value();
    return request;
}

}  // namespace

bool is_passed_on(std::string_view method) {
    return std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end();
}

std::string name_for_log(std::string_view method) {
    return is_passed_on(method) || method == kTunnelMethod ? std::string(method) : "other";
}

bool is_proxys_own(std::string_view field) {
    return is_among(kOneConnection, field) || same_name(field, "Host");
}

Allowed<ProxyRequest> read_proxy_request(const MessageHead& head) {
    if (head.method == kTunnelMethod) {
        return read_tunnel(head);
    }
    BOOST_OUTCOME_TRY(check_method(head));
    auto target = parse_absolute_target(head.target);
    if (target.has_error()) {
        return EgressRefusal{Reason::kBadTarget, target.error().message() + "."};
    }
    BOOST_OUTCOME_TRY(check_host(head, target.value().authority, kHttpPort));
    return ProxyRequest{
        false, head.method, target.value().authority, std::move(target).value().origin};
}

Allowed<ProxyRequest> read_inner_request(const MessageHead& head, const Authority& tunnel) {
    BOOST_OUTCOME_TRY(check_method(head));
    if (const Status origin = check_origin_target(head.target); origin.has_error()) {
        return EgressRefusal{Reason::kBadTarget, origin.error().message() + "."};
    }
    BOOST_OUTCOME_TRY(check_host(head, tunnel, kHttpsPort));
    return ProxyRequest{false, head.method, tunnel, head.target};
}

std::string make_upstream_head(
    const MessageHead& head,
    const ProxyRequest& request,
    std::uint16_t default_port,
    const Framing& framing,
    const std::vector<std::string>& dropped,
    const std::vector<Field>& added) {
    std::string text = request.method + " " + request.origin + " HTTP/1.1\r\n" +
                       field_line("Host", host_header(request.target, default_port));
    const auto listed = named_by_connection(head);
    for (const Field& field : head.fields) {
        const bool stays = !is_among(kOneConnection, field.name) && !is_among(listed, field.name) &&
                           !is_among(dropped, field.name) && !same_name(field.name, "Host");
        if (stays) {
            text += field_line(field.name, field.value);
        }
    }
    for (const Field& field : added) {
        text += field_line(field.name, field.value);
    }
    return text + framing_line(framing) + "Connection: close\r\n\r\n";
}

std::string make_client_head(const MessageHead& head, const Framing& framing, Afterwards after) {
    std::string text = "HTTP/1.1 " + std::to_string(head.status) + " " + head.reason + "\r\n";
    const auto listed = named_by_connection(head);
    for (const Field& field : head.fields) {
        if (!is_among(kOneConnection, field.name) && !is_among(listed, field.name)) {
            text += field_line(field.name, field.value);
        }
    }
    return text + framing_line(framing) +
           (after == Afterwards::kClose ? "Connection: close\r\n\r\n"
                                        : "Connection: keep-alive\r\n\r\n");
}

std::string make_chunk(std::string_view piece) {
    std::array<char, 16> digits{};
    const auto written =
        std::to_chars(digits.data(), digits.data() + digits.size(), piece.size(), 16);
    std::string chunk(digits.data(), written.ptr);
    chunk += "\r\n";
    chunk += piece;
    return chunk + "\r\n";
}

}  // namespace cellkeep::egress
