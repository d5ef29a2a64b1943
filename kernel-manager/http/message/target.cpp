// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/target.hpp"

#include <algorithm>

namespace cellkeep::http {

namespace {

int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

enum class Plus { kLiteral, kSpace };

Result<std::string> decode(std::string_view text, Plus plus) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '+' && plus == Plus::kSpace) {
            out.push_back(' ');
            continue;
        }
        if (text[i] != '%') {
            out.push_back(text[i]);
            continue;
        }
        const int high = i + 1 < text.size() ? hex_value(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
        if (high < 0 || low < 0) {
            return Error(
                ErrorCode::kInvalidArgument, "a % without two hexadecimal digits in the target");
        }
        if (high == 0 && low == 0) {
            return Error(ErrorCode::kInvalidArgument, "a NUL in the target");
        }
        out.push_back(static_cast<char>(high * 16 + low));
        i += 2;
    }
    return out;
}

Status parse_query(std::string_view text, Target& target) {
    while (!text.empty()) {
        const std::size_t end = text.find('&');
        const std::string_view pair = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
        if (pair.empty()) {
            continue;
        }
        const std::size_t equals = pair.find('=');
        BOOST_OUTCOME_TRY(std::string name, decode(pair.substr(0, equals), Plus::kSpace));
        std::string value;
        if (equals != std::string_view::npos) {
            BOOST_OUTCOME_TRY(value, decode(pair.substr(equals + 1), Plus::kSpace));
        }
        target.query.emplace(std::move(name), std::move(value));
    }
    return ok();
}

/// Takes "http://HOST" away from the front: a server must accept the absolute form (RFC 9112,
/// section 3.2.2).
Result<std::string_view> take_authority(std::string_view& text) {
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (!text.starts_with(scheme)) {
            continue;
        }
        const std::size_t end = std::min(text.find_first_of("/?#", scheme.size()), text.size());
        const std::string_view authority = text.substr(scheme.size(), end - scheme.size());
        if (authority.empty() || authority.find('@') != std::string_view::npos) {
            return Error(
                ErrorCode::kInvalidArgument,
                "the target has no host, or user information before it");
        }
        text = end == text.size() ? std::string_view("/") : text.substr(end);
        return authority;
    }
    return std::string_view();
}

}  // namespace

std::optional<std::string> Target::find_query(std::string_view name) const {
    const auto found = query.find(name);
    if (found == query.end()) {
        return std::nullopt;
    }
    return found->second;
}

Result<Target> parse_target(std::string_view text) {
    Target target;
    if (text == "*") {
        target.path = "*";
        return target;
    }
    BOOST_OUTCOME_TRY(target.authority, take_authority(text));
    if (text.empty() || text.front() != '/') {
        return Error(ErrorCode::kInvalidArgument, "the target does not begin with a slash");
    }
    text = text.substr(0, text.find('#'));
    const std::size_t question = text.find('?');
    std::string_view path = text.substr(0, question);
    target.path = path;
    while (!path.empty()) {
        path.remove_prefix(1);  // the slash
        const std::size_t slash = path.find('/');
        const std::string_view raw = path.substr(0, slash);
        path = slash == std::string_view::npos ? std::string_view() : path.substr(slash);
        if (raw.empty() && path.empty() && target.segments.empty()) {
            break;  // "/"
        }
        BOOST_OUTCOME_TRY(std::string segment, decode(raw, Plus::kLiteral));
        if (const std::string_view name = segment; name == "." || name == "..") {
            return Error(ErrorCode::kInvalidArgument, "\".\" and \"..\" are not allowed in a path");
        }
        target.segments.push_back(std::move(segment));
    }
    if (question != std::string_view::npos) {
        target.query_text = text.substr(question + 1);
        BOOST_OUTCOME_TRY(parse_query(text.substr(question + 1), target));
    }
    return target;
}

std::string encode_segment(std::string_view text) {
    static constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
        if (plain) {
            out.push_back(c);
        } else {
            out.push_back('%');
            out.push_back(kDigits[byte >> 4U]);
            out.push_back(kDigits[byte & 15U]);
        }
    }
    return out;
}

}  // namespace cellkeep::http
