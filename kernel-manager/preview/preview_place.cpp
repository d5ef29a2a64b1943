// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/preview_place.hpp"

#include "kernel-manager/http/access/host_field.hpp"

#include <algorithm>
#include <charconv>

namespace cellkeep::preview {

namespace {

/// As Jupyter's clients and this server's own send the server's token.
constexpr std::string_view kServerTokenParameter = "token";

int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

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

bool holds_token(std::string_view pair, const IsSecret& is_secret) {
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string name = decode_query_text(pair.substr(0, equals));
    if (name == kTokenParameter) {
        return true;
    }
    return name == kServerTokenParameter && equals < pair.size() &&
           is_secret(decode_query_text(pair.substr(equals + 1)));
}

}  // namespace

std::optional<std::uint16_t> parse_port(std::string_view text) {
    std::uint16_t port = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, port);
    const bool plain = failed == std::errc() && stop == end && port > 0 && !text.starts_with('0');
    return plain ? std::optional(port) : std::nullopt;
}

PreviewPlace find_place(
    const http::Request& request,
    std::uint16_t port,
    std::size_t own_segments,
    const IsSecret& is_secret) {
    PreviewPlace place;
    place.port = port;
    const auto host = http::host_of(request.headers.get("Host"));
    place.own_host = host && http::split_sandbox_host(*host).has_value();
    const std::string& path = request.target.path;
    const std::size_t inner = request.target.segments.size() - own_segments;
    const std::string_view tail = tail_of(path, inner);
    place.prefix = path.substr(0, path.size() - tail.size());
    if (place.prefix == "/") {
        place.prefix.clear();  // the path is "/": it has no segments
    }
    place.target = tail.empty() ? std::string("/") : std::string(tail);
    if (const std::string query = without_tokens(request.target.query_text, is_secret);
        !query.empty()) {
        place.target += "?" + query;
    }
    return place;
}

std::string without_tokens(std::string_view query, const IsSecret& is_secret) {
    std::string kept;
    while (!query.empty()) {
        const std::size_t end = std::min(query.find('&'), query.size());
        const std::string_view pair = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        if (!holds_token(pair, is_secret)) {
            kept += (kept.empty() ? "" : "&") + std::string(pair);
        }
    }
    return kept;
}

std::string decode_query_text(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
        const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
        if (low >= 0) {
            out.push_back(static_cast<char>(high * 16 + low));
            i += 2;
        } else {
            out.push_back(text[i] == '+' ? ' ' : text[i]);
        }
    }
    return out;
}

}  // namespace cellkeep::preview
