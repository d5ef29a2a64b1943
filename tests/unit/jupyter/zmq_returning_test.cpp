// SPDX-License-Identifier: Apache-2.0
//
// The first moments in the other program, in which ZeroMQ clients connect again.
#include "kernel-manager/jupyter/zmq/client_return.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/jupyter/zmq_replacing.hpp"

using namespace cellkeep;
using namespace cellkeep::jupyter;
using namespace cellkeep::jupyter::test;
using protocol::Channel;

namespace {

void wait_for_rest(Stage& stage) {
    REQUIRE(stage.run_until([&] { return !stage.front->find_work(*stage.session).has_value(); }));
}

void greet_subscriber(Stage& stage, ZmqTestClient& client) {
    client.subscribe();
    REQUIRE(stage.receive(client, Channel::kIopub).header().msg_type == "iopub_welcome");
}

LateReply late_reply(const std::string& identity) {
    return {
        {identity},
        protocol::Message::make(
            Channel::kShell,
            protocol::make_header("execute_reply", "s", "u"),
            nlohmann::json::object(),
            nlohmann::json::object()),
        ""};
}

}  // namespace

TEST_CASE("output waits until its subscriber is back", "[jupyter][returning]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    greet_subscriber(stage, client);
    wait_for_rest(stage);
    bool resumed = false;
    stage.session->on_resume = [&] { resumed = true; };
    replace(stage);
    // A thread of the session's prints before anybody can be back.
    CHECK(stage.session->congested());
    stage.session->publish("stream", {{"name", "stdout"}, {"text", "at once"}});
    CHECK(stage.receive(client, Channel::kIopub).header().msg_type == "stream");
    CHECK(stage.receive(client, Channel::kIopub).header().msg_type == "iopub_welcome");
    CHECK(stage.run_until([&] { return resumed; }));
    CHECK_FALSE(stage.session->congested());
}

TEST_CASE("a client that looks late finds its output", "[jupyter][returning]") {
    // libzmq subscribes again in the client's own thread: when that looks at the socket.
    ZmqFrontConfig config;
    Stage stage(config);
    ZmqTestClient client(stage.context, stage.session->connection_file);
    greet_subscriber(stage, client);
    wait_for_rest(stage);
    SECTION("within the bound") {
        replace(stage);
        client.wait_until_parted();
        client.send(Channel::kShell, "execute_request");
        REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
        CHECK_FALSE(stage.session->congested());  // it goes on
        stage.session->publish_bytes(1, kKeptOutputBytesMax / 2);
        stage.session->publish("stream", {{"name", "stdout"}, {"text", "last"}});
        FakeSession::reply(stage.session->submitted[0], {{"status", "ok"}});
        CHECK(stage.receive(client, Channel::kShell).header().msg_type == "execute_reply");
        CHECK(stage.receive(client, Channel::kIopub).buffer_count() == 1);
        CHECK(stage.receive(client, Channel::kIopub).header().msg_type == "stream");
        CHECK(stage.receive(client, Channel::kIopub).header().msg_type == "iopub_welcome");
        CHECK(stage.count(PeerEvent::kOutputDropped) == 0);
        wait_for_rest(stage);
    }
    SECTION("beyond it the newest, and what is lost is counted") {
        replace(stage);
        REQUIRE(stage.run_until([&] { return !stage.session->congested(); }));
        for (std::size_t number = 0; number < 3; ++number) {
            stage.session->publish_bytes(number, kKeptOutputBytesMax / 2 - 4096);
        }
        CHECK(stage.count(PeerEvent::kOutputDropped) == 1);
        CHECK(stage.receive(client, Channel::kIopub).content_json() == R"({"n":1})");
        CHECK(stage.receive(client, Channel::kIopub).content_json() == R"({"n":2})");
    }
    SECTION("not for ever") {
        config.stall_max = std::chrono::milliseconds(50);
        replace(
            stage, [] {}, config);
        REQUIRE(stage.run_until([&] { return !stage.session->congested(); }));
        stage.session->publish("stream", {{"name", "stdout"}, {"text", "late"}});
        CHECK(stage.front->find_work(*stage.session).has_value());
        REQUIRE(stage.run_until([&] { return stage.count(PeerEvent::kOutputDropped) == 1; }));
        wait_for_rest(stage);
        CHECK(stage.receive(client, Channel::kIopub).header().msg_type == "iopub_welcome");
    }
}

TEST_CASE("a heart beats again", "[jupyter][returning]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    const auto beats = [&] { return try_receive_frames(client.heartbeat).has_value(); };
    send_frames(client.heartbeat, {"one"});
    REQUIRE(stage.run_until(beats));
    // It is sent while no front is there.
    replace(stage, [&] {
        client.wait_until_parted();
        send_frames(client.heartbeat, {"two"});
    });
    CHECK(stage.run_until(beats));
}

TEST_CASE("a session that nobody subscribes to keeps no output", "[jupyter][returning]") {
    Stage stage;
    replace(stage);
    CHECK_FALSE(stage.session->congested());
    stage.session->publish("stream", {{"name", "stdout"}, {"text", "for nobody"}});
    ZmqTestClient client(stage.context, stage.session->connection_file);
    greet_subscriber(stage, client);
    stage.session->publish("status", {{"execution_state", "idle"}});
    CHECK(stage.receive(client, Channel::kIopub).header().msg_type == "status");
}

TEST_CASE("a subscriber that does not come back keeps nobody for long", "[jupyter][returning]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    greet_subscriber(stage, client);
    wait_for_rest(stage);
    bool resumed = false;
    stage.session->on_resume = [&] { resumed = true; };
    replace(stage, [&] { client.iopub.close(); });
    client.wait_until_parted();
    client.send(Channel::kShell, "execute_request");
    client.send(Channel::kControl, "kernel_info_request");
    client.send(Channel::kStdin, "input_reply");
    // What answers a question is never held.
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
    CHECK(stage.session->submitted[0].message.channel() == Channel::kStdin);
    CHECK(
        stage.front->find_work(*stage.session).value_or("") ==
        "clients over ZeroMQ are coming back");
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 3; }));
    CHECK(stage.run_until([&] { return resumed; }));
    CHECK_FALSE(stage.session->congested());
}

TEST_CASE("an answer waits for its client", "[jupyter][returning]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    stage.front->hold();
    std::vector<std::string> sent;
    for (int i = 0; i < 3; ++i) {
        sent.push_back(client.send(Channel::kShell, "execute_request").header().msg_id);
    }
    REQUIRE(stage.run_until([&] { return stage.front->count_held(stage.session->id()) == 3; }));
    wait_for_rest(stage);
    SECTION("which comes, and gets all in their order") {
        replace(stage);
        REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 3; }));
        for (const Submitted& request : stage.session->submitted) {
            FakeSession::reply(request, {{"status", "ok"}});
        }
        // libzmq connects again 100 ms later at the least.
        CHECK(
            stage.front->find_work(*stage.session).value_or("") ==
            "clients over ZeroMQ are coming back");
        for (const std::string& id : sent) {
            CHECK(stage.receive(client, Channel::kShell).parent().msg_id == id);
        }
        CHECK(stage.count(PeerEvent::kUndeliverable) == 0);
    }
    SECTION("which does not come: that is counted") {
        replace(stage, [&] { client.shell.close(); });
        REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 3; }));
        FakeSession::reply(stage.session->submitted[0], {{"status", "ok"}});
        CHECK(stage.run_until([&] { return stage.count(PeerEvent::kUndeliverable) == 1; }));
        wait_for_rest(stage);
    }
}

TEST_CASE("a session that ends meanwhile calls nobody", "[jupyter][returning]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    greet_subscriber(stage, client);
    wait_for_rest(stage);
    replace(stage);
    stage.front->on_session_closed(stage.session->id());
    CHECK(stage.session->observers.empty());
    CHECK_FALSE(stage.session->congested());
    stage.io.restart();
    (void)stage.io.run_for(std::chrono::milliseconds(0));
    CHECK(stage.session->submitted.empty());
}

TEST_CASE("the time to come back has an end", "[jupyter][returning]") {
    boost::asio::io_context io;
    int back = 0;
    std::vector<std::string> sent;
    std::shared_ptr<ClientReturn> returning;
    bool gone = true;
    ClientReturn::Hooks hooks;
    hooks.on_back = [&] { ++back; };
    hooks.send = [&](LateReply reply) {
        if (returning->waits_for(reply.identities) || (gone && returning->may_keep())) {
            returning->keep(std::move(reply));
            return;
        }
        sent.push_back(reply.identities.front());
    };
    constexpr std::chrono::milliseconds kShort{50};
    const auto begin = [&](std::size_t subscriptions) {
        returning = ClientReturn::begin(io, subscriptions, hooks, kShort);
        CHECK(back == 0);
        CHECK(returning->is_awaited());
    };
    SECTION("at once without subscriptions") {
        begin(0);
        CHECK(run_until(io, [&] { return back == 1; }));
        CHECK_FALSE(returning->is_awaited());
    }
    SECTION("with the last of them, and more are no matter") {
        begin(2);
        returning->note_subscription();
        returning->note_subscription();
        returning->note_subscription();
        CHECK(run_until(io, [&] { return back == 1; }));
    }
    SECTION("in time with one of two") {
        begin(2);
        returning->note_subscription();
        CHECK(run_until(io, [&] { return back == 1; }));
    }
    SECTION("for answers, too") {
        begin(0);
        hooks.send(late_reply("a"));
        hooks.send(late_reply("b"));
        hooks.send(late_reply("a"));
        CHECK(returning->kept() == 3);
        CHECK(run_until(io, [&] { return sent.size() == 3; }));
        CHECK(sent == std::vector<std::string>{"a", "b", "a"});
        CHECK_FALSE(returning->may_keep());
        CHECK(returning->kept() == 0);
    }
    SECTION("never when it was stopped") {
        begin(0);
        hooks.send(late_reply("a"));
        returning->stop();
        CHECK_FALSE(returning->may_keep());
        io.restart();
        CHECK(io.run() <= 1);  // the timer's end
        CHECK(back == 0);
        CHECK(sent.empty());
    }
}
