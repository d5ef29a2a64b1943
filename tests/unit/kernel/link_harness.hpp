// SPDX-License-Identifier: Apache-2.0
//
// The server's end of a link whose kernel is the test.
#pragma once

#include "kernel-manager/kernel/link/kernel_link.hpp"
#include "protocol/frame.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <sys/socket.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::test {

inline protocol::Message stream_text(const std::string& text) {
    return protocol::Message::make(
        protocol::Channel::kIopub,
        protocol::make_header("stream", "s", "u"),
        nlohmann::json::object(),
        {{"text", text}});
}

inline std::string on_wire(const protocol::Message& one) {
    return protocol::encode_link_prefix(one.frame().size()) + std::string(one.frame());
}

struct LinkHarness {
    boost::asio::io_context io;
    UniqueFd peer;
    std::vector<protocol::Message> received;
    std::vector<std::string> closings;
    std::shared_ptr<session::KernelLink> link;

    explicit LinkHarness(
        session::FrameBounds bounds = {}, std::size_t memory = limits::kLinkFramesBytesMax) {
        boost::asio::make_service<session::FrameMemory>(io, memory);
        auto pair = make_socket_pair(SOCK_STREAM).value();
        REQUIRE(set_nonblocking(pair.first.get()).has_value());
        peer = std::move(pair.second);
        link =
            session::KernelLink::create(
                io,
                std::move(pair.first),
                {.on_message =
                     [this](protocol::Message one) { received.push_back(std::move(one)); },
                 .on_closed = [this](const Error& error) { closings.push_back(error.message()); }},
                bounds)
                .value();
        link->start();
    }
    ~LinkHarness() { link->close(); }
    LinkHarness(const LinkHarness&) = delete;
    LinkHarness& operator=(const LinkHarness&) = delete;

    void say(std::string_view bytes) { REQUIRE(write_all(peer.get(), bytes).has_value()); }
    /// Runs until the link has closed.
    void run_to_close() {
        while (closings.empty()) {
            io.run_one();
        }
    }
};

}  // namespace cellkeep::test
