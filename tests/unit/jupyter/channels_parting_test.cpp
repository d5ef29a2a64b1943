// SPDX-License-Identifier: Apache-2.0
//
// Clients that are asked to connect again, because another program takes the server's place.
#include "tests/unit/jupyter/hub_fixture.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::jupyter::test {
namespace {

using http::CloseCode;
using Work = std::optional<std::string>;

/// Connected, with nothing left to read.
std::shared_ptr<FakeSocket> connect_at_rest(HubFixture& f, const std::string& key) {
    auto socket = f.connect(key);
    socket->prove(socket->got.size());
    return socket;
}

TEST_CASE("a client with a name would come back, another would not", "[channels][parting]") {
    HubFixture f;
    const auto named = f.connect("a");
    CHECK(f.session->returning_clients.use_count() == 2);
    CHECK(f.session->clients.use_count() == 1);
    const auto unnamed = f.connect("");
    CHECK(f.session->returning_clients.use_count() == 2);
    CHECK(f.session->clients.use_count() == 2);
    named->cut();
    unnamed->cut();
    f.settle();
    CHECK(f.session->returning_clients.use_count() == 1);
    CHECK(f.session->clients.use_count() == 1);
}

TEST_CASE("a client rests when it has read nearly all", "[channels][parting]") {
    // kPartingUnreadBytesMax
    HubFixture f;
    CHECK(f.hub->find_work() == Work());
    const auto socket = connect_at_rest(f, "a");
    CHECK(f.hub->find_work() == Work());
    // Frames have more bytes than their buffers; the bound is that of the frames.
    const std::size_t extra = FakeSession::make_bytes(1, 0).frame().size();
    const std::size_t last = kPartingUnreadBytesMax - extra;
    SECTION("at the bound") {
        REQUIRE(FakeSession::make_bytes(1, last).frame().size() == kPartingUnreadBytesMax);
        f.session->publish_bytes(1, last);
        f.settle();
        CHECK(f.hub->find_work() == Work());
    }
    SECTION("one byte past it, sent and not proved") {
        f.session->publish_bytes(1, last + 1);
        f.settle();
        CHECK(socket->got.size() == 2);
        CHECK(f.hub->find_work() == "a Jupyter client is being served");
        socket->prove(2);
        CHECK(f.hub->find_work() == Work());
    }
    SECTION("one byte past it, not sent") {
        socket->pause();
        f.session->publish_bytes(1, last / 2);
        f.session->publish_bytes(2, last / 2 + 2);
        f.settle();
        CHECK(f.hub->find_work() == "a Jupyter client is being served");
        socket->cut();  // what waits for a client that is away waits for nobody
        f.settle();
        CHECK(f.hub->find_work() == Work());
    }
    SECTION("answers count, too") {
        socket->say(make_request());
        f.settle();
        REQUIRE(f.session->submitted.size() == 1);
        socket->pause();
        FakeSession::reply(
            f.session->submitted[0], {{"text", std::string(kPartingUnreadBytesMax, 'x')}});
        f.settle();
        CHECK(f.hub->find_work() == "a Jupyter client is being served");
    }
}

TEST_CASE("a message that is being read is work", "[channels][parting]") {
    HubFixture f;
    WorkThread thread;
    f.work_thread = &thread;
    const auto socket = connect_at_rest(f, "a");
    socket->say(protocol::Message::make(
        protocol::Channel::kShell,
        protocol::make_header("execute_request", "client", "user"),
        nlohmann::json::object(),
        {{"code", std::string(300'000, 'x')}}));
    while (f.hub->find_work() == Work()) {
        f.io.restart();
        (void)f.io.run_one();
        REQUIRE(f.session->submitted.empty());
    }
    CHECK(f.hub->find_work() == "a Jupyter client is being served");
    while (f.session->submitted.empty()) {
        f.io.restart();
        (void)f.io.run_one();
    }
    f.settle();
    CHECK(f.hub->find_work() == Work());
}

TEST_CASE("a client that waits for its old socket is work", "[channels][parting]") {
    HubFixture f;
    const auto old = f.connect("a");  // it has not proved to have read the state
    const auto again = f.connect("a");
    CHECK(f.hub->find_work() == "a Jupyter client connects");
    old->prove(1);
    f.settle();
    CHECK(old->closed == CloseCode::kNormal);
    again->prove(again->got.size());
    CHECK(f.hub->find_work() == Work());
}

TEST_CASE("as many clients part as places are remembered", "[channels][parting]") {
    // limits::kChannelsPlacesMax
    HubFixture f;
    std::vector<std::shared_ptr<FakeSocket>> sockets;
    for (std::size_t i = 0; i < limits::kChannelsPlacesMax; ++i) {
        sockets.push_back(connect_at_rest(f, "client " + std::to_string(i)));
    }
    CHECK(f.hub->find_work() == Work());
    const auto one_more = connect_at_rest(f, "one more");
    CHECK(f.hub->find_work() == "more Jupyter clients are connected than are remembered");
    one_more->cut();
    f.settle();
    CHECK(f.hub->find_work() == Work());
}

TEST_CASE("clients are asked to connect again, and get nothing more", "[channels][parting]") {
    HubFixture f;
    const auto one = connect_at_rest(f, "one");
    const auto two = connect_at_rest(f, "two");
    f.hub->part();
    f.settle();
    for (const auto& socket : {one, two}) {
        CHECK(socket->asked_to_leave == CloseCode::kServiceRestart);
        CHECK_FALSE(socket->reason.empty());
        CHECK_FALSE(socket->closed.has_value());
    }
    (void)f.session->say("meanwhile");
    f.settle();
    CHECK(one->texts() == Texts{"idle"});
    CHECK(f.hub->find_work() == "a Jupyter client does not close its WebSocket");
    one->cut();
    f.settle();
    CHECK(f.hub->find_work() == "a Jupyter client does not close its WebSocket");
    two->cut();
    f.settle();
    CHECK(f.hub->find_work() == Work());
    CHECK(f.ended == 2);
    // The upgrade was given up: they come back to the same program.
    f.hub->end_parting();
    CHECK(f.connect("one")->texts() == Texts{"meanwhile", "idle"});
    CHECK(f.connect("two")->texts() == Texts{"meanwhile", "idle"});
}

TEST_CASE("what a client says while it parts is done, and is work", "[channels][parting]") {
    HubFixture f;
    const auto socket = connect_at_rest(f, "a");
    f.hub->part();
    socket->say(make_request());
    f.settle();
    REQUIRE(f.session->submitted.size() == 1);
    CHECK(f.hub->find_work() == "a Jupyter client has asked for something meanwhile");
    FakeSession::reply(f.session->submitted[0], {{"tag", "answer"}});
    socket->say(http::WebSocketKind::kBinary, "no message");
    socket->cut();
    f.settle();
    // It is gone and answered, but no other program may take its answer's place.
    CHECK(f.hub->find_work() == "a Jupyter client has asked for something meanwhile");
    f.hub->end_parting();
    CHECK(f.hub->find_work() == Work());
    CHECK(f.connect("a")->texts() == Texts{"answer", "idle"});
}

TEST_CASE("a client that floods while it parts is left at the bound", "[channels][parting]") {
    // limits::kChannelsWaitingMessagesMax
    HubFixture f;
    const auto socket = connect_at_rest(f, "a");
    f.hub->part();
    const auto ask = [&](std::size_t answers) {
        socket->say(make_request());
        f.settle();
        for (std::size_t i = 0; i < answers; ++i) {
            FakeSession::reply(f.session->submitted.back(), {{"tag", "answer"}});
        }
    };
    ask(limits::kChannelsWaitingMessagesMax - 1);
    ask(0);
    CHECK(f.session->submitted.size() == 2);
    CHECK(f.ended == 0);
    ask(1);  // was received before the bound was reached
    CHECK(f.session->submitted.size() == 3);
    ask(0);  // so was this
    CHECK(f.session->submitted.size() == 4);
    CHECK(f.ended == 1);
}

TEST_CASE("a session that ends while its clients part lets them go", "[channels][parting]") {
    HubFixture f;
    const auto socket = connect_at_rest(f, "a");
    f.hub->part();
    f.session->close({session::Death::Kind::kCulled, 0});
    f.hub->close(CloseCode::kNormal, f.hub->close_reason());
    f.settle();
    socket->cut();
    f.settle();
    CHECK(f.ended == 1);
    CHECK(f.session->observers.empty());
}

}  // namespace
}  // namespace cellkeep::jupyter::test
