// SPDX-License-Identifier: Apache-2.0
//
// Both ends of a kernel link inside one test.
#pragma once

#include "kernels/common/inbox.hpp"
#include "kernels/common/link.hpp"
#include "kernels/common/outbox.hpp"
#include "protocol/frame.hpp"
#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::kernels {

inline std::pair<UniqueFd, UniqueFd> make_pair() {
    auto pair = make_socket_pair(SOCK_STREAM);
    REQUIRE(pair);
    return std::move(pair.value());
}

struct LinkPair {
    LinkPair() : LinkPair(make_pair()) {}
    explicit LinkPair(std::pair<UniqueFd, UniqueFd> ends)
        : kernel(std::move(ends.first)), server(std::move(ends.second)) {}

    /// The next message that the kernel's end has sent.
    protocol::Message sent() {
        auto message = server.read();
        REQUIRE(message);
        REQUIRE(message.value());
        return *message.value();
    }

    nlohmann::json sent_content() {
        auto content = sent().parse_content();
        REQUIRE(content);
        return content.value();
    }

    /// Sends to the kernel; returns the msg_id.
    std::string send(
        protocol::Channel channel,
        std::string_view type,
        const nlohmann::json& content,
        const nlohmann::json& parent = nlohmann::json::object()) {
        const protocol::Header header = protocol::make_header(type, "s", "u");
        REQUIRE(server.send(protocol::Message::make(channel, header, parent, content).frame()));
        return header.msg_id;
    }

    Link kernel;
    Link server;
    Outbox outbox{kernel, "session"};
    Inbox inbox{kernel};
};

}  // namespace cellkeep::kernels
