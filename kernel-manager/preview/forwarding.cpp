// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/forwarding.hpp"

#include "kernel-manager/http/access/origin.hpp"
#include "kernel-manager/preview/credentials.hpp"
#include "kernel-manager/preview/redirect.hpp"
#include "protocol/support/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace cellkeep::preview {

namespace {

using http::equals_ignoring_case;

/// Fields of one connection, not of what is sent over it (RFC 9110, section 7.6.1), and those that
/// make_inner_head() writes itself.
constexpr std::array<std::string_view, 12> kPerConnection = {
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Content-Length",
    "Expect",
    "HTTP2-Settings"};
/// Fields that make_inner_head() writes itself, or that a proxy in front of this server has
/// written: nothing inside need know of it.
constexpr std::array<std::string_view, 4> kWrittenAnew = {
    "Host", "Forwarded", "X-Real-IP", "X-Access-Token"};
constexpr std::array<std::string_view, 3> kOurPrefixes = {"X-Forwarded-", "E2B-", "Cellkeep-"};
/// Fields of an answer that this server writes itself, or that are about more than the address of
/// the port: the last two make a browser report later addresses to a host that the page names.
constexpr std::array<std::string_view, 8> kNotForVisitors = {
    "Date",
    "Server",
    "Alt-Svc",
    "Clear-Site-Data",
    "Strict-Transport-Security",
    "Public-Key-Pins",
    "NEL",
    "Report-To"};
/// The same of an answer that a browser takes for one of this server's own origin.
constexpr std::array<std::string_view, 6> kNotForOwnOrigin = {
    "Set-Cookie",
    "Service-Worker-Allowed",
    "Refresh",
    "SourceMap",
    "WWW-Authenticate",
    "Reporting-Endpoints"};

template <typename Names>
bool is_one_of(const Names& names, std::string_view name) {
    return std::any_of(names.begin(), names.end(), [name](std::string_view one) {
        return equals_ignoring_case(one, name);
    });
}

bool starts_like(std::string_view text, std::string_view start) {
    return text.size() >= start.size() && equals_ignoring_case(text.substr(0, start.size()), start);
}

/// Fields that a Connection field names are of the connection, too.
std::vector<std::string_view> named_by_connection(const http::Headers& headers) {
    std::vector<std::string_view> named;
    for (const auto& [name, value] : headers.all()) {
        if (equals_ignoring_case(name, "Connection")) {
            const auto elements = split_list(value, ',');
            named.insert(named.end(), elements.begin(), elements.end());
        }
    }
    return named;
}

std::string foreign_cookies(std::string_view cookies) {
    std::string kept;
    for (const std::string_view cookie : split_list(cookies, ';')) {
        if (cookie_name(cookie) != kTokenCookie) {
            kept += (kept.empty() ? "" : "; ") + std::string(cookie);
        }
    }
    return kept;
}

/// A page's own address may still hold a token.
bool is_own_referer(std::string_view referer, std::string_view host) {
    const std::size_t scheme = referer.find("://");
    if (scheme == std::string_view::npos) {
        return false;
    }
    const std::size_t end = std::min(referer.find_first_of("/?#", scheme + 3), referer.size());
    return http::is_own_origin(referer.substr(0, end), host) &&
           referer.find("token=") == std::string_view::npos;
}

/// The value to pass on; nullopt: nothing.
std::optional<std::string> inner_value(
    const http::Request& request,
    const PreviewPlace& place,
    std::string_view name,
    const std::string& value,
    const IsSecret& is_secret) {
    if (equals_ignoring_case(name, "Authorization")) {
        const bool ours = !place.own_host || holds_secret(value, is_secret);
        return ours ? std::nullopt : std::optional(value);
    }
    if (equals_ignoring_case(name, "X-API-Key")) {
        return is_secret(trim(value)) ? std::nullopt : std::optional(value);
    }
    if (equals_ignoring_case(name, "Cookie")) {
        std::string kept = place.own_host ? foreign_cookies(value) : std::string();
        return kept.empty() ? std::nullopt : std::optional(std::move(kept));
    }
    if (equals_ignoring_case(name, "Origin")) {
        return place.own_host ? std::optional(value) : std::nullopt;
    }
    if (equals_ignoring_case(name, "Referer")) {
        const bool own = place.own_host && is_own_referer(value, request.headers.get("Host"));
        return own ? std::optional(value) : std::nullopt;
    }
    return value;
}

bool stays_outside(
    std::string_view name, bool upgrade, const std::vector<std::string_view>& named) {
    return is_one_of(kPerConnection, name) || is_one_of(kWrittenAnew, name) ||
           is_one_of(named, name) ||
           std::any_of(
               kOurPrefixes.begin(),
               kOurPrefixes.end(),
               [name](std::string_view prefix) { return starts_like(name, prefix); }) ||
           (!upgrade && starts_like(name, "Sec-WebSocket-"));
}

void add_line(std::string& head, std::string_view name, std::string_view value) {
    head += std::string(name) + ": " + std::string(value) + "\r\n";
}

/// Without Domain: a cookie is for this host alone, not for those of other ports and sessions.
std::string host_only_cookie(std::string_view cookie) {
    std::string kept;
    for (const std::string_view part : split_list(cookie, ';')) {
        if (kept.empty() || !equals_ignoring_case(trim(part.substr(0, part.find('='))), "Domain")) {
            kept += (kept.empty() ? "" : "; ") + std::string(part);
        }
    }
    return kept;
}

/// The value for the visitor; nullopt: nothing.
std::optional<std::string> outer_value(
    std::string_view name, const std::string& value, const PreviewPlace& place) {
    if (is_one_of(kNotForVisitors, name)) {
        return std::nullopt;
    }
    if (!place.own_host &&
        (is_one_of(kNotForOwnOrigin, name) || starts_like(name, "Access-Control-"))) {
        return std::nullopt;
    }
    if (equals_ignoring_case(name, "Set-Cookie")) {
        const bool ours = cookie_name(value) == kTokenCookie;
        return ours ? std::nullopt : std::optional(host_only_cookie(value));
    }
    return value;
}

std::vector<std::string_view> named_by_connection(const egress::MessageHead& answer) {
    std::vector<std::string_view> named;
    for (const std::string_view value : egress::values_of(answer, "Connection")) {
        const auto elements = split_list(value, ',');
        named.insert(named.end(), elements.begin(), elements.end());
    }
    return named;
}

}  // namespace

InnerFraming framing_of(const http::Request& request) {
    if (request.headers.find("Transfer-Encoding") != nullptr) {
        return {InnerFraming::Kind::kChunked, 0};
    }
    const std::string_view text = request.headers.get("Content-Length");
    std::uint64_t length = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, length);
    if (text.empty() || failed != std::errc() || stop != end) {
        return {};
    }
    return {InnerFraming::Kind::kLength, length};
}

std::string make_inner_head(
    const http::Request& request,
    const PreviewPlace& place,
    const InnerFraming& framing,
    std::string_view public_scheme,
    const IsSecret& is_secret) {
    const bool upgrade = request.websocket.has_value();
    const std::string_view host = request.headers.get("Host");
    std::string head = request.method + " " + place.target + " HTTP/1.1\r\n";
    add_line(
        head,
        "Host",
        place.own_host ? std::string(host) : "localhost:" + std::to_string(place.port));
    const auto named = named_by_connection(request.headers);
    for (const auto& [name, value] : request.headers.all()) {
        if (stays_outside(name, upgrade, named)) {
            continue;
        }
        if (const auto passed = inner_value(request, place, name, value, is_secret)) {
            add_line(head, name, *passed);
        }
    }
    add_line(head, "X-Forwarded-Host", host);
    add_line(head, "X-Forwarded-Proto", public_scheme);
    if (!place.prefix.empty()) {
        add_line(head, "X-Forwarded-Prefix", place.prefix);
    }
    if (framing.kind == InnerFraming::Kind::kLength) {
        add_line(head, "Content-Length", std::to_string(framing.length));
    } else if (framing.kind == InnerFraming::Kind::kChunked) {
        add_line(head, "Transfer-Encoding", "chunked");
    }
    if (upgrade) {
        add_line(head, "Upgrade", "websocket");
    }
    add_line(head, "Connection", upgrade ? "Upgrade" : "close");
    return head + "\r\n";
}

std::optional<http::Headers> make_outer_headers(
    const egress::MessageHead& answer, const PreviewPlace& place, std::string_view host) {
    http::Headers headers;
    const auto named = named_by_connection(answer);
    for (const egress::Field& field : answer.fields) {
        if (is_one_of(kPerConnection, field.name) || is_one_of(named, field.name)) {
            continue;
        }
        if (equals_ignoring_case(field.name, "Location")) {
            auto location = rewrite_location(field.value, place, host);
            if (!location) {
                return std::nullopt;
            }
            headers.add(field.name, std::move(*location));
        } else if (auto value = outer_value(field.name, field.value, place)) {
            headers.add(field.name, std::move(*value));
        }
    }
    if (!place.own_host) {
        // A browser must not take the guest's page for one of this server's origin.
        headers.add("Content-Security-Policy", "sandbox");
        headers.set("X-Content-Type-Options", "nosniff");
    }
    return headers;
}

std::optional<http::Headers> make_switch_headers(
    const egress::MessageHead& answer, const PreviewPlace& place) {
    const auto upgrades = egress::values_of(answer, "Upgrade");
    if (upgrades.size() != 1 || !equals_ignoring_case(upgrades[0], "websocket") ||
        egress::values_of(answer, "Sec-WebSocket-Accept").size() != 1) {
        return std::nullopt;
    }
    http::Headers headers;
    headers.add("Upgrade", "websocket");
    for (const egress::Field& field : answer.fields) {
        const bool cookie = place.own_host && equals_ignoring_case(field.name, "Set-Cookie");
        if (starts_like(field.name, "Sec-WebSocket-")) {
            headers.add(field.name, field.value);
        } else if (cookie) {
            if (auto value = outer_value(field.name, field.value, place)) {
                headers.add(field.name, std::move(*value));
            }
        }
    }
    return headers;
}

}  // namespace cellkeep::preview
