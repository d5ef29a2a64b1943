// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/head.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>
#include <string_view>
#include <utility>

namespace cellkeep::http {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kUnlessSaid = {
    {{"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}}};

std::string http_date() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    (void)::gmtime_r(&now, &parts);
    std::array<char, 40> text{};
    const std::size_t length =
        std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return {text.data(), length};
}

}  // namespace

std::string serialize_head(const Response& response, After after, Framing framing) {
    std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
    head += reason_phrase(response.status);
    head += "\r\nDate: " + http_date() + "\r\nServer: cellkeep\r\n";
    for (const auto& [name, value] : response.headers.all()) {
        head += name + ": ";
        // A value made from a guest's file name must never be able to end the line.
        std::transform(value.begin(), value.end(), std::back_inserter(head), [](char c) {
            return c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
        });
        head += "\r\n";
    }
    if (framing == Framing::kChunked) {
        head += "Transfer-Encoding: chunked\r\n";
    } else if (framing == Framing::kLength && response.status != 204 && response.status != 304) {
        head += "Content-Length: " + std::to_string(response.content_length()) + "\r\n";
    }
    // Said once: a handler that knows better has said it already.
    for (const auto& [name, value] : kUnlessSaid) {
        if (!response.foreign && response.headers.find(name) == nullptr) {
            head += std::string(name) + ": " + std::string(value) + "\r\n";
        }
    }
    switch (after) {
        case After::kKeepAlive:
            return head + "Connection: keep-alive\r\n\r\n";
        case After::kClose:
            return head + "Connection: close\r\n\r\n";
        case After::kTunnel:
            break;
    }
    return head + "Connection: Upgrade\r\n\r\n";
}

}  // namespace cellkeep::http
