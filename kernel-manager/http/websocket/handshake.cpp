// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/websocket/handshake.hpp"

#include "kernel-manager/http/message/problem.hpp"
#include "protocol/support/text.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::http {

namespace {

constexpr std::string_view kVersion = "13";
/// 16 bytes in base64: 22 digits of which the last has four bits, and two fillers.
constexpr std::size_t kKeyCharacters = 24;

bool is_token_character(char c) {
    static constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != std::string_view::npos;
}

/// The elements of a list that may be spread over several fields (RFC 9110, section 5.6.1).
std::vector<std::string_view> list_of(const Headers& headers, std::string_view name) {
    std::vector<std::string_view> elements;
    for (const auto& [field, value] : headers.all()) {
        if (!equals_ignoring_case(field, name)) {
            continue;
        }
        std::string_view rest = value;
        while (!rest.empty()) {
            const std::size_t comma = rest.find(',');
            if (const auto element = trim(rest.substr(0, comma)); !element.empty()) {
                elements.push_back(element);
            }
            rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
        }
    }
    return elements;
}

bool contains(const std::vector<std::string_view>& elements, std::string_view wanted) {
    return std::any_of(elements.begin(), elements.end(), [wanted](std::string_view element) {
        return equals_ignoring_case(element, wanted);
    });
}

bool is_key(std::string_view text) {
    static constexpr std::string_view kLastDigits = "AQgw";  // four zero bits at the end
    text = trim(text);
    if (text.size() != kKeyCharacters || text.substr(kKeyCharacters - 2) != "==") {
        return false;
    }
    const std::string_view digits = text.substr(0, kKeyCharacters - 2);
    return kLastDigits.find(digits.back()) != std::string_view::npos &&
           std::all_of(digits.begin(), digits.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '+' || c == '/';
           });
}

}  // namespace

HandshakeView inspect_handshake(const Request& request, HttpVersion version) {
    HandshakeView view;
    const Headers& headers = request.headers;
    if (request.method != "GET" || version != HttpVersion::k11 ||
        !contains(list_of(headers, "Upgrade"), "websocket") ||
        !contains(list_of(headers, "Connection"), "upgrade")) {
        return view;
    }
    if (trim(headers.get("Sec-WebSocket-Version")) != kVersion) {
        view.version_unknown = true;
        return view;
    }
    if (headers.get("Host").empty() || !is_key(headers.get("Sec-WebSocket-Key"))) {
        return view;
    }
    WebSocketOffer offer;
    for (const std::string_view name : list_of(headers, "Sec-WebSocket-Protocol")) {
        if (!std::all_of(name.begin(), name.end(), is_token_character)) {
            return view;
        }
        offer.protocols.emplace_back(name);
    }
    view.offer = std::move(offer);
    return view;
}

Response make_version_refusal() {
    Response response =
        to_response(make_problem(426, "This server speaks version 13 of the WebSocket protocol."));
    response.headers.add("Upgrade", "websocket");
    response.headers.add("Sec-WebSocket-Version", std::string(kVersion));
    return response;
}

}  // namespace cellkeep::http
