// SPDX-License-Identifier: Apache-2.0
//
// A hub of a session without a kernel, with clients that the test plays.
#pragma once

#include "kernel-manager/jupyter/channels/channels_hub.hpp"
#include "tests/unit/jupyter/fake_socket.hpp"
#include "tests/unit/jupyter/journal_session.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::jupyter::test {

inline protocol::Message make_request(
    const std::string& type = "execute_request",
    protocol::Channel channel = protocol::Channel::kShell) {
    return protocol::Message::make(
        channel,
        protocol::make_header(type, "client", "user"),
        nlohmann::json::object(),
        {{"code", "1"}});
}

struct HubFixture {
    explicit HubFixture(std::chrono::milliseconds settle_max = std::chrono::minutes(1)) {
        SubscriptionConfig config;
        config.settle_max = settle_max;
        hub = std::make_shared<ChannelsHub>(io, session, nullptr, config);
    }
    HubFixture(const HubFixture&) = delete;
    HubFixture& operator=(const HubFixture&) = delete;
    /// A real session releases the sender of a request once it has answered; the fake one does not.
    ~HubFixture() { session->submitted.clear(); }

    std::shared_ptr<FakeSocket> connect(
        const std::string& key, Replay replay = Replay::kPlace, std::string since = {}) {
        auto socket = std::make_shared<FakeSocket>(io);
        ChannelsClient client;
        client.key = key;
        client.replay = replay;
        client.style.framing = Framing::kV1;
        client.work_thread = work_thread;
        if (!since.empty()) {
            client.since = std::move(since);
        }
        boost::asio::co_spawn(
            io,
            ChannelsHub::serve(hub, socket, std::move(client)),
            [this](std::exception_ptr thrown) {
                REQUIRE_FALSE(thrown);
                ++ended;
            });
        settle();
        return socket;
    }
    /// Runs everything that is ready.
    void settle() {
        io.restart();
        (void)io.poll();
    }

    boost::asio::io_context io{1};
    std::shared_ptr<JournalSession> session = std::make_shared<JournalSession>();
    std::shared_ptr<ChannelsHub> hub;
    WorkThread* work_thread = nullptr;
    int ended = 0;
};

}  // namespace cellkeep::jupyter::test
