// SPDX-License-Identifier: Apache-2.0
//
// Who subscribes to a session's output over ZeroMQ, as the session counts its clients.
#include "kernel-manager/jupyter/zmq/zmq_session.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/jupyter/zmq_client.hpp"

#include <catch2/catch.hpp>

using namespace cellkeep;
using namespace cellkeep::jupyter;
using namespace cellkeep::jupyter::test;
using protocol::Channel;

TEST_CASE("a subscriber of the output counts as connected until it goes", "[jupyter]") {
    Stage stage;
    // The session itself holds one.
    const auto connected = [&] { return stage.session->returning_clients.use_count() == 2; };
    auto client = std::make_unique<ZmqTestClient>(stage.context, stage.session->connection_file);
    client->send(Channel::kShell, "kernel_info_request");
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
    CHECK_FALSE(connected());  // it asks and does not stay
    client->subscribe();
    CHECK(stage.run_until(connected));
    SECTION("it says that it goes") {
        client->iopub.set(zmq::sockopt::unsubscribe, "");
        CHECK(stage.run_until([&] { return !connected(); }));
        client->subscribe();
        CHECK(stage.run_until(connected));
    }
    SECTION("its connection goes") {
        client.reset();
        CHECK(stage.run_until([&] { return !connected(); }));
    }
    SECTION("another one stays, also on another topic") {
        const std::string topic = GENERATE(as<std::string>(), "", "kernel.");
        ZmqTestClient other(stage.context, stage.session->connection_file);
        other.subscribe(topic);
        CHECK(stage.receive(other, Channel::kIopub).header().msg_type == "iopub_welcome");
        client.reset();
        // A message of a client that came after the first had gone.
        ZmqTestClient later(stage.context, stage.session->connection_file);
        later.send(Channel::kShell, "kernel_info_request");
        REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 2; }));
        CHECK(connected());
        other.iopub.set(zmq::sockopt::unsubscribe, topic);
        CHECK(stage.run_until([&] { return !connected(); }));
    }
    SECTION("it subscribes twice, and goes once") {
        client->subscribe("kernel.");
        client->subscribe("kernel.");
        client.reset();
        CHECK(stage.run_until([&] { return !connected(); }));
    }
    SECTION("the session ends") {
        stage.front->on_session_closed(stage.session->id());
        CHECK_FALSE(connected());
    }
}

TEST_CASE("more topics than are remembered keep no session for ever", "[jupyter]") {
    Stage stage;
    const auto connected = [&] { return stage.session->returning_clients.use_count() == 2; };
    auto client = std::make_unique<ZmqTestClient>(stage.context, stage.session->connection_file);
    for (std::size_t i = 0; i < limits::kZmqTopicsMax + 1; ++i) {
        client->subscribe("topic-" + std::to_string(i));
    }
    const std::string last = "topic-" + std::to_string(limits::kZmqTopicsMax);
    REQUIRE(stage.run_until([&] {
        const auto greeting = client->try_receive(Channel::kIopub);
        return greeting.has_value() && client->last_topic == last;
    }));
    CHECK(connected());
    client.reset();
    CHECK(stage.run_until([&] { return !connected(); }));
}
