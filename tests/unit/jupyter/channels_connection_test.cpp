// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/channels/channels_connection.hpp"

#include "protocol/frame.hpp"
#include "tests/unit/jupyter/hub_fixture.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::jupyter::test {
namespace {

using http::CloseCode;
using http::WebSocketKind;
using protocol::Channel;
using protocol::Message;

TEST_CASE("messages that another thread reads stay in order", "[channels][connection][limits]") {
    // http::kTextReadAtOnceBytesMax
    HubFixture f;
    WorkThread thread;
    f.work_thread = &thread;
    const auto socket = f.connect("a");
    const auto say = [&](const std::string& type, std::size_t bytes) {
        socket->say(Message::make(
            Channel::kShell,
            protocol::make_header(type, "client", "user"),
            nlohmann::json::object(),
            {{"code", std::string(bytes, 'x')}}));
    };
    say("first", 300'000);
    say("second", 1);
    say("third", 300'000);
    say("fourth", 1);
    const auto run_until = [&f](const auto& done) {
        while (!done()) {
            f.io.restart();
            (void)f.io.run_one();
        }
    };
    run_until([&f] { return f.session->submitted.size() == 4; });
    std::vector<std::string> types;
    for (const auto& [message, client] : f.session->submitted) {
        types.push_back(message.header().msg_type);
    }
    CHECK(types == std::vector<std::string>{"first", "second", "third", "fourth"});
    CHECK_FALSE(socket->closed.has_value());
    socket->say(WebSocketKind::kText, std::string(300'000, 'x'));  // no form of this framing
    run_until([&socket] { return socket->closed.has_value(); });
    CHECK(socket->closed == CloseCode::kUnsupportedData);
    CHECK(f.session->submitted.size() == 4);
}

TEST_CASE("a client gets the present state", "[channels][connection]") {
    HubFixture f;
    f.session->kernel_state = session::KernelState::kBusy;
    (void)f.session->say("before");
    const auto socket = f.connect("a", Replay::kNone);
    REQUIRE(socket->texts() == Texts{"busy"});
    const Message status = socket->messages().front();
    CHECK(status.header().msg_type == "status");
    CHECK(status.channel() == Channel::kIopub);
    CHECK(status.parent_header_json() == "{}");
    CHECK(status.header().session == "kernel");
    // For clients "restarting" is an event that makes them connect again.
    f.session->kernel_state = session::KernelState::kRestarting;
    CHECK(f.connect("b", Replay::kNone)->texts() == Texts{"starting"});
}

TEST_CASE("requests go in and answers come out", "[channels][connection]") {
    HubFixture f;
    const auto socket = f.connect("a");
    socket->say(make_request());
    f.settle();
    REQUIRE(f.session->submitted.size() == 1);
    CHECK(f.session->submitted[0].message.header().msg_type == "execute_request");
    (void)f.session->say("output");
    FakeSession::reply(f.session->submitted[0], {{"status", "ok"}, {"tag", "answer"}});
    f.settle();
    CHECK(socket->texts() == Texts{"idle", "output", "answer"});
}

TEST_CASE("a client counts as connected while its socket is open", "[channels][connection]") {
    HubFixture f;
    const auto connections = [&f] { return f.session->returning_clients.use_count() - 1; };
    CHECK(connections() == 0);
    const auto socket = f.connect("a");
    CHECK(connections() == 1);
    socket->cut();
    f.settle();
    CHECK(connections() == 0);
    CHECK(f.ended == 1);
}

TEST_CASE("one bad message is counted and does not end the socket", "[channels][connection]") {
    HubFixture f;
    const auto socket = f.connect("a");
    const std::string bad_header =
        protocol::encode_frame(std::vector<std::string_view>{"shell", "{}", "{}", "{}", "{}"})
            .value();
    socket->say(WebSocketKind::kBinary, bad_header);
    socket->say(make_request());
    f.settle();
    CHECK_FALSE(socket->closed.has_value());
    CHECK(f.hub->log().count(PeerEvent::kRejected) == 1);
    CHECK(f.session->submitted.size() == 1);
}

TEST_CASE("a bad request is answered with an error and idle", "[channels][connection]") {
    HubFixture f;
    const auto socket = f.connect("a");
    const Message request = make_request();
    const auto bad = [&](std::string_view channel, std::string_view content) {
        return protocol::encode_frame(std::vector<std::string_view>{
                                          channel, request.header_json(), "{}", "{}", content})
            .value();
    };
    socket->say(WebSocketKind::kBinary, bad("iopub", "{}"));
    socket->say(WebSocketKind::kBinary, bad("control", "[]"));
    f.settle();
    CHECK(f.session->submitted.empty());
    CHECK(f.hub->log().count(PeerEvent::kRejected) == 2);
    int errors = 0;
    int idle = 0;
    for (const Message& message : socket->messages()) {
        if (message.parent().msg_id == request.header().msg_id) {
            errors += message.header().msg_type == "execute_reply" ? 1 : 0;
            idle += text_of(message) == "idle" ? 1 : 0;
        }
    }
    CHECK(errors == 2);
    CHECK(idle == 2);
}

TEST_CASE("broken framing ends the socket with a reason", "[channels][connection]") {
    HubFixture f;
    const auto broken = f.connect("a");
    broken->say(WebSocketKind::kBinary, "not a frame");
    f.settle();
    CHECK(broken->closed == CloseCode::kProtocolError);
    CHECK_FALSE(broken->reason.empty());
    const auto text = f.connect("b");
    text->say(WebSocketKind::kText, "{}");
    f.settle();
    CHECK(text->closed == CloseCode::kUnsupportedData);
    CHECK(f.ended == 2);
}

TEST_CASE("a client that comes back gets the messages that it lacks", "[channels][connection]") {
    HubFixture f;
    const auto first = f.connect("a");
    first->say(make_request());
    f.session->say_many(3);
    f.settle();
    CHECK(first->texts() == Texts{"idle", "0", "1", "2"});
    first->prove(3);
    first->cut();
    f.settle();
    (void)f.session->say("while away");
    FakeSession::reply(f.session->submitted[0], {{"status", "ok"}, {"tag", "answer"}});
    const auto second = f.connect("a");
    CHECK(second->texts() == Texts{"2", "while away", "answer", "idle"});
    CHECK(f.hub->places() == 1);
}

TEST_CASE("of two sockets of one client the newest wins", "[channels][connection]") {
    HubFixture f;
    const auto first = f.connect("a");
    (void)f.session->say("0");
    f.settle();
    // The old connection may still prove what the client has read.
    const auto second = f.connect("a");
    CHECK_FALSE(first->closed.has_value());
    CHECK(second->got.empty());
    (void)f.session->say("1");
    f.settle();
    first->prove(2);
    f.settle();
    CHECK(first->closed == CloseCode::kNormal);
    CHECK(f.ended == 1);
    CHECK(first->texts() == Texts{"idle", "0"});
    CHECK(second->texts() == Texts{"1", "idle"});
    CHECK_FALSE(second->closed.has_value());
}

TEST_CASE("an old socket that proves no receipt is not waited for long", "[channels][connection]") {
    HubFixture f(std::chrono::milliseconds(1));
    const auto first = f.connect("a");
    (void)f.session->say("0");
    f.settle();
    const auto second = f.connect("a");
    const auto third = f.connect("a");
    f.io.restart();
    const auto one_is_left = [&] {
        return first->closed.has_value() &&
               (second->closed.has_value() || third->closed.has_value());
    };
    while (!one_is_left() && f.io.run_one_for(std::chrono::seconds(60)) > 0) {
    }
    f.settle();
    CHECK(first->closed == CloseCode::kNormal);
    CHECK(second->closed.has_value() != third->closed.has_value());
    const auto& stays = second->closed.has_value() ? third : second;
    CHECK(stays->texts() == Texts{"0", "idle"});
}

TEST_CASE(
    "a new client gets the output of the running cell, or what it asks for",
    "[channels][connection]") {
    HubFixture f;
    (void)f.session->say_status("busy", "over");
    (void)f.session->say_status("idle", "over");
    (void)f.session->say_status("busy", "cell");
    const std::string last = f.session->say("half", "cell");
    (void)f.session->say("done", "cell");
    const Texts all{"busy", "idle", "busy", "half", "done", "idle"};
    const auto named = f.connect("a");
    CHECK(named->texts() == Texts{"busy", "half", "done", "idle"});
    CHECK(f.connect("")->texts() == Texts{"busy", "half", "done", "idle"});
    CHECK(f.connect("b", Replay::kAll)->texts() == all);
    CHECK(f.connect("c", Replay::kNone)->texts() == Texts{"idle"});
    CHECK(f.connect("d", Replay::kPlace, last)->texts() == Texts{"done", "idle"});
    CHECK(f.connect("e", Replay::kPlace, "no such message")->texts() == all);
    // A requested place takes precedence over the remembered one.
    named->cut();
    f.settle();
    CHECK(f.connect("a", Replay::kPlace, last)->texts() == Texts{"done", "idle"});
}

TEST_CASE("a client without a name leaves nothing behind", "[channels][connection]") {
    HubFixture f;
    const auto socket = f.connect("");
    CHECK(f.hub->places() == 1);
    socket->cut();
    f.settle();
    CHECK(f.hub->places() == 0);
    CHECK(f.session->observers.empty());
}

TEST_CASE("places of clients that left are bounded, the oldest goes", "[channels][connection]") {
    HubFixture f;
    const auto stays = f.connect("stays");
    for (std::size_t i = 0; i <= limits::kChannelsPlacesMax; ++i) {
        const auto socket = f.connect("away " + std::to_string(i));
        (void)f.session->say(std::to_string(i));
        f.settle();
        socket->cut();
        f.settle();
        CHECK(f.hub->places() == std::min(i + 2, limits::kChannelsPlacesMax + 1));
    }
    CHECK(f.connect("away 1")->got.size() > limits::kChannelsPlacesMax);
    CHECK(f.connect("away 0")->got.size() > 1);
    CHECK_FALSE(stays->closed.has_value());
}

TEST_CASE("a slow client neither loses messages nor slows another", "[channels][connection]") {
    HubFixture f;
    const auto slow = f.connect("slow", Replay::kNone);
    const auto fast = f.connect("fast", Replay::kNone);
    slow->pause();
    constexpr std::size_t kMessages = limits::kJournalMessagesMax;
    f.session->say_many(kMessages);
    f.settle();
    CHECK_FALSE(f.session->congested());
    CHECK(fast->got.size() == kMessages + 1);
    CHECK(slow->got.size() == 1);
    slow->read_on();
    f.settle();
    CHECK(slow->texts() == fast->texts());
}

TEST_CASE(
    "the server does not read from a client that does not read its answers",
    "[channels][connection]") {
    HubFixture f;
    const auto socket = f.connect("a");
    socket->pause();
    socket->say(make_request());
    f.settle();
    REQUIRE(f.session->submitted.size() == 1);
    for (std::size_t i = 0; i < limits::kChannelsWaitingMessagesMax + 1; ++i) {
        FakeSession::reply(f.session->submitted[0], {{"status", "ok"}});
    }
    socket->say(make_request());  // is received: that was under way
    socket->say(make_request());
    f.settle();
    CHECK(f.session->submitted.size() == 2);
    socket->read_on();
    f.settle();
    CHECK(f.session->submitted.size() == 3);
    CHECK(socket->got.size() == limits::kChannelsWaitingMessagesMax + 2);
}

TEST_CASE("the end of the session reaches everyone, last words first", "[channels][connection]") {
    HubFixture f;
    const auto socket = f.connect("a");
    const auto slow = f.connect("b");
    slow->pause();
    (void)f.session->say("last words");
    f.session->close({session::Death::Kind::kCulled, 0});
    f.hub->close(CloseCode::kNormal, f.hub->close_reason());
    f.settle();
    CHECK(socket->texts() == Texts{"idle", "last words", "dead"});
    CHECK(socket->closed == CloseCode::kNormal);
    CHECK(socket->reason == session::describe({session::Death::Kind::kCulled, 0}));
    CHECK_FALSE(slow->closed.has_value());
    slow->read_on();
    f.settle();
    CHECK(slow->closed == CloseCode::kNormal);
    CHECK(slow->texts().back() == "dead");
    const auto late = f.connect("c");
    CHECK(late->closed == CloseCode::kNormal);
    CHECK(f.ended == 3);
    CHECK(f.session->observers.empty());
}

}  // namespace
}  // namespace cellkeep::jupyter::test
