// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/access/origin.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::http {

namespace {

/// A browser asks again after this many seconds; Chromium's maximum.
constexpr const char* kMaxAgeSeconds = "7200";

struct Parts {
    std::string_view scheme;
    std::string_view authority;
};

/// Empty parts if it is not SCHEME://AUTHORITY.
Parts split_origin(std::string_view origin) {
    const std::size_t colon = origin.find("://");
    if (colon == std::string_view::npos) {
        return {};
    }
    return {origin.substr(0, colon), origin.substr(colon + 3)};
}

bool ends_with(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// A browser leaves the scheme's own port away in Origin and Host; other clients may not.
std::string_view without_default_port(std::string_view authority, std::string_view scheme) {
    const std::string_view port = equals_ignoring_case(scheme, "https") ? ":443" : ":80";
    return ends_with(authority, port) ? authority.substr(0, authority.size() - port.size())
                                      : authority;
}

bool is_origin(std::string_view text) {
    const Parts parts = split_origin(text);
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
               c == ':' || c == '[' || c == ']' || c == '+' || c == '_';
    };
    return !parts.scheme.empty() && !parts.authority.empty() &&
           std::all_of(parts.scheme.begin(), parts.scheme.end(), allowed) &&
           std::all_of(parts.authority.begin(), parts.authority.end(), allowed);
}

}  // namespace

bool is_own_origin(std::string_view origin, std::string_view host) {
    const Parts parts = split_origin(origin);
    return !parts.authority.empty() && equals_ignoring_case(
                                           without_default_port(parts.authority, parts.scheme),
                                           without_default_port(host, parts.scheme));
}

Result<OriginPolicy> OriginPolicy::create(std::vector<std::string> allowed) {
    OriginPolicy policy;
    for (std::string& origin : allowed) {
        if (origin == "*") {
            policy.any_ = true;
            continue;
        }
        if (!is_origin(origin)) {
            return Error(
                ErrorCode::kInvalidArgument,
                "allow-origin: \"" + origin + "\" is not an origin",
                "Give \"*\" or what a browser sends: scheme, host and port in lower case, without "
                "a slash at the end, for example https://lab.example:8443.");
        }
        policy.allowed_.push_back(std::move(origin));
    }
    return policy;
}

bool OriginPolicy::allows(std::string_view origin) const {
    return any_ || std::find(allowed_.begin(), allowed_.end(), origin) != allowed_.end();
}

bool OriginPolicy::admits(const Request& request) const {
    const std::string* origin = request.headers.find("Origin");
    return origin == nullptr || is_own_origin(*origin, request.headers.get("Host")) ||
           allows(*origin);
}

bool OriginPolicy::is_preflight(const Request& request) const {
    const std::string* origin = request.headers.find("Origin");
    return request.method == "OPTIONS" && origin != nullptr && allows(*origin) &&
           request.headers.find("Access-Control-Request-Method") != nullptr;
}

Response OriginPolicy::answer_preflight() {
    Response response = make_empty(204);
    response.headers.add("Access-Control-Allow-Methods", "GET, PUT, POST, PATCH, DELETE, OPTIONS");
    // The first four are what @jupyterlab/services sends, the last four are MCP's, the rest is the
    // session API's.
    response.headers.add(
        "Access-Control-Allow-Headers",
        "accept, content-type, authorization, x-xsrftoken, idempotency-key, range, "
        "last-event-id, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name");
    response.headers.add("Access-Control-Max-Age", kMaxAgeSeconds);
    return response;
}

void OriginPolicy::add_headers(const Request& request, Response& response) const {
    if (!any_ && allowed_.empty()) {
        return;
    }
    // Also on answers to other origins: a cache must not give one origin's answer to another.
    response.headers.add("Vary", "Origin");
    const std::string* origin = request.headers.find("Origin");
    if (origin == nullptr || !allows(*origin)) {
        return;
    }
    // The origin itself, not "*". No Allow-Credentials: there are no cookies to send.
    response.headers.add("Access-Control-Allow-Origin", *origin);
    response.headers.add(
        "Access-Control-Expose-Headers",
        "Location, Allow, Retry-After, Content-Disposition, Content-Range, WWW-Authenticate, "
        "Mcp-Session-Id");
}

}  // namespace cellkeep::http
