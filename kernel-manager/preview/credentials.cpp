// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/credentials.hpp"

#include "protocol/base64.hpp"
#include "protocol/support/text.hpp"

#include <algorithm>

namespace cellkeep::preview {

namespace {

using http::equals_ignoring_case;

/// Jupyter's clients and this server's own clients send the server's token so.
constexpr std::string_view kServerTokenParameter = "token";

int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool is_server_token(std::string_view pair, const IsSecret& is_secret) {
    const std::size_t equals = std::min(pair.find('='), pair.size());
    return equals < pair.size() &&
           decode_query_text(pair.substr(0, equals)) == kServerTokenParameter &&
           is_secret(decode_query_text(pair.substr(equals + 1)));
}

bool is_preview_token(std::string_view pair) {
    return decode_query_text(pair.substr(0, pair.find('='))) == kTokenParameter;
}

}  // namespace

std::vector<std::string_view> split_list(std::string_view list, char separator) {
    std::vector<std::string_view> elements;
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(separator), list.size());
        elements.push_back(trim(list.substr(0, end)));
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return elements;
}

std::string header_token(const http::Request& request) {
    const std::string_view text = trim(request.headers.get("Authorization"));
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view scheme = text.substr(0, space);
    if (equals_ignoring_case(scheme, "bearer") || equals_ignoring_case(scheme, "token")) {
        return std::string(trim(text.substr(space)));
    }
    return std::string(trim(request.headers.get("X-API-Key")));
}

std::string_view cookie_name(std::string_view cookie) {
    return trim(cookie.substr(0, std::min(cookie.find('='), cookie.find(';'))));
}

std::vector<std::string> preview_cookies(const http::Request& request) {
    std::vector<std::string> found;
    for (const auto& [name, value] : request.headers.all()) {
        if (!equals_ignoring_case(name, "Cookie")) {
            continue;
        }
        for (const std::string_view cookie : split_list(value, ';')) {
            const std::size_t equals = cookie.find('=');
            if (equals != std::string_view::npos && cookie_name(cookie) == kTokenCookie &&
                found.size() < kTokenCookiesMax) {
                found.emplace_back(trim(cookie.substr(equals + 1)));
            }
        }
    }
    return found;
}

bool holds_secret(std::string_view field, const IsSecret& is_secret) {
    const std::string_view text = trim(field);
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view value = trim(text.substr(space));
    if (is_secret(text) || is_secret(value)) {
        return true;
    }
    if (!equals_ignoring_case(text.substr(0, space), "basic")) {
        return false;
    }
    const auto decoded = protocol::decode_base64(value);
    if (!decoded) {
        return false;
    }
    const std::string_view pair = *decoded;
    const std::size_t colon = std::min(pair.find(':'), pair.size());
    return is_secret(pair.substr(0, colon)) ||
           (colon < pair.size() && is_secret(pair.substr(colon + 1)));
}

bool address_holds_secret(const http::Request& request, const IsSecret& is_secret) {
    // "/token/TOKEN/…" is not in the text of the query (http/application.cpp).
    const auto first = request.target.find_query(kServerTokenParameter);
    if (first && is_secret(*first)) {
        return true;
    }
    const auto pairs = split_list(request.target.query_text, '&');
    return std::any_of(pairs.begin(), pairs.end(), [&](std::string_view pair) {
        return is_server_token(pair, is_secret);
    });
}

bool bears_token(const http::Request& request, const IsSecret& is_secret) {
    const auto& fields = request.headers.all();
    return std::any_of(fields.begin(), fields.end(), [&](const auto& field) {
        const std::string& name = field.first;
        const bool of_server =
            equals_ignoring_case(name, "Authorization") || equals_ignoring_case(name, "X-API-Key");
        const bool of_sandbox = equals_ignoring_case(name, "X-Access-Token") ||
                                equals_ignoring_case(name, "E2B-Traffic-Access-Token");
        return of_sandbox || (of_server && holds_secret(field.second, is_secret));
    });
}

std::string without_tokens(std::string_view query, const IsSecret& is_secret) {
    std::string kept;
    while (!query.empty()) {
        const std::size_t end = std::min(query.find('&'), query.size());
        const std::string_view pair = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        if (!is_preview_token(pair) && !is_server_token(pair, is_secret)) {
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
