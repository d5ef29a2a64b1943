// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/watched_socket.hpp"

#include "protocol/limits.hpp"
#include "tests/unit/jupyter/zmq_client.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace cellkeep;
using namespace cellkeep::jupyter;
using namespace cellkeep::jupyter::test;
using protocol::Channel;

TEST_CASE("one flooding client cannot keep the others from their turn", "[jupyter][watched]") {
    Stage stage;
    ZmqTestClient flood(stage.context, stage.session->connection_file);
    constexpr std::size_t kMessages = 10 * limits::kZmqTurnMessagesMax;
    for (std::size_t i = 0; i < kMessages; ++i) {
        flood.send(Channel::kShell, "execute_request");
    }
    std::size_t before = 0;
    std::size_t most = 0;
    REQUIRE(stage.run_until([&] {
        // Runs one handler at a time, so the messages that it adds are those of one turn.
        while (stage.io.poll_one() > 0) {
            most = std::max(most, stage.session->submitted.size() - before);
            before = stage.session->submitted.size();
        }
        stage.io.restart();
        return stage.session->submitted.size() == kMessages;
    }));
    CHECK(most <= limits::kZmqTurnMessagesMax);
}

TEST_CASE("no arrival goes unnoticed while answers are being sent", "[jupyter][watched]") {
    // Ping-pong both ways at once: each send may swallow the descriptor's edge for an arrival.
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    constexpr std::size_t kRounds = 2000;
    std::size_t answered = 0;
    std::size_t got = 0;
    for (std::size_t i = 0; i < 10; ++i) {
        client.send(Channel::kShell, "execute_request");
    }
    REQUIRE(stage.run_until([&] {
        for (; answered < stage.session->submitted.size(); ++answered) {
            FakeSession::reply(stage.session->submitted[answered], {{"status", "ok"}});
        }
        while (client.try_receive(Channel::kShell).has_value()) {
            ++got;
            client.send(Channel::kShell, "execute_request");
        }
        return got >= kRounds;
    }));
}
