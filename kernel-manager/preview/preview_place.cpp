// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/preview_place.hpp"

#include "kernel-manager/http/access/host_field.hpp"

#include <charconv>

namespace cellkeep::preview {

namespace {

constexpr std::string_view kSessionIdPrefix = "ses_";

/// The last segments of a path as it was sent, with the slash before each.
std::string_view tail_of(std::string_view path, std::size_t segments) {
    std::size_t at = path.size();
    for (; segments > 0 && at != 0; --segments) {
        at = path.rfind('/', at - 1);
        if (at == std::string_view::npos) {
            return {};
        }
    }
    return path.substr(at);
}

/// A host of that form that names another session, or none, is not the port's own: this server
/// answers there with its own addresses.
bool is_own_host(const http::Request& request, std::string_view session_id, std::uint16_t port) {
    const auto host = http::host_of(request.headers.get("Host"));
    const auto parts = host ? http::split_sandbox_host(*host) : std::nullopt;
    return parts && parts->port == port && parts->id == id_in_hosts(session_id);
}

}  // namespace

std::optional<std::uint16_t> parse_port(std::string_view text) {
    std::uint16_t port = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, port);
    const bool plain = failed == std::errc() && stop == end && port > 0 && !text.starts_with('0');
    return plain ? std::optional(port) : std::nullopt;
}

std::string_view id_in_hosts(std::string_view session_id) {
    return session_id.substr(
        session_id.starts_with(kSessionIdPrefix) ? kSessionIdPrefix.size() : 0);
}

PreviewPlace find_place(
    const http::Request& request,
    std::string_view session_id,
    std::uint16_t port,
    std::size_t own_segments,
    const IsSecret& is_secret) {
    PreviewPlace place;
    place.port = port;
    place.own_host = is_own_host(request, session_id, port);
    place.bears_token = !place.own_host || bears_token(request, is_secret);
    const std::string& path = request.target.path;
    const std::size_t inner = request.target.segments.size() - own_segments;
    const std::string_view tail = tail_of(path, inner);
    place.prefix = path.substr(0, path.size() - tail.size());
    if (place.prefix.ends_with('/')) {
        place.prefix.pop_back();  // the path has no segments behind the base URL
    }
    place.target = tail.empty() ? std::string("/") : std::string(tail);
    if (const std::string query = without_tokens(request.target.query_text, is_secret);
        !query.empty()) {
        place.target += "?" + query;
    }
    return place;
}

}  // namespace cellkeep::preview
