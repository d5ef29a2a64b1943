// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/wire/sandbox_place.hpp"

#include "kernel-manager/http/access/host_field.hpp"

#include <algorithm>
#include <charconv>

namespace cellkeep::e2b {

namespace {

constexpr std::string_view kSessionPrefix = "ses_";
constexpr std::size_t kIdDigits = 24;

bool is_lower_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

void put_before(http::Request& request, std::string_view id, std::uint16_t port) {
    auto& segments = request.target.segments;
    segments.insert(
        segments.begin(), {std::string(kSandboxSegment), std::string(id), std::to_string(port)});
}

std::uint16_t parse_port(std::string_view text) {
    std::uint16_t port = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, port);
    return failed == std::errc() && stop == end ? port : 0;
}

}  // namespace

std::optional<std::string> session_id_of(std::string_view sandbox_id) {
    if (sandbox_id.starts_with(kSessionPrefix)) {
        sandbox_id.remove_prefix(kSessionPrefix.size());
    }
    if (sandbox_id.size() != kIdDigits ||
        !std::all_of(sandbox_id.begin(), sandbox_id.end(), is_lower_hex)) {
        return std::nullopt;
    }
    return std::string(kSessionPrefix) + std::string(sandbox_id);
}

std::string sandbox_id_of(std::string_view session_id) {
    if (session_id.starts_with(kSessionPrefix)) {
        session_id.remove_prefix(kSessionPrefix.size());
    }
    return std::string(session_id);
}

bool enter_by_host(http::Request& request) {
    const auto host = http::host_of(request.headers.get("Host"));
    const auto parts = host ? http::split_sandbox_host(*host) : std::nullopt;
    if (!parts || !session_id_of(parts->id)) {
        return false;
    }
    put_before(request, parts->id, parts->port);
    return true;
}

void enter_by_header(http::Request& request) {
    const std::string* port = request.headers.find("E2b-Sandbox-Port");
    const std::string* id = request.headers.find("E2b-Sandbox-Id");
    if (port == nullptr || id == nullptr) {
        return;
    }
    // One that names nothing is refused where sandboxes are looked for.
    put_before(request, *id, parse_port(*port));
}

}  // namespace cellkeep::e2b
