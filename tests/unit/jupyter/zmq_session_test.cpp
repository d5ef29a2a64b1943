// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/zmq_session.hpp"

#include "protocol/limits.hpp"
#include "tests/unit/jupyter/zmq_client.hpp"

#include <catch2/catch.hpp>

using namespace cellkeep;
using namespace cellkeep::jupyter;
using namespace cellkeep::jupyter::test;
using protocol::Channel;

namespace {

/// Sends frames that must be refused, then a good message. When that arrives, the frames have been
/// refused.
void check_refused(Stage& stage, ZmqTestClient& client, const Frames& frames) {
    const std::uint64_t before = stage.count(PeerEvent::kRejected);
    const std::size_t arrived = stage.session->submitted.size();
    send_frames(client.shell, frames);
    const protocol::Message good = client.send(Channel::kShell, "kernel_info_request");
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == arrived + 1; }));
    CHECK(stage.session->submitted.back().message.header().msg_id == good.header().msg_id);
    CHECK(stage.count(PeerEvent::kRejected) == before + 1);
    // The refused frames get no answer: the first answer is the one to the good message.
    FakeSession::reply(stage.session->submitted.back(), {{"status", "ok"}});
    CHECK(stage.receive(client, Channel::kShell).parent().msg_id == good.header().msg_id);
}

}  // namespace

TEST_CASE("requests reach the session and answers their client, on every channel", "[jupyter]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    for (const Channel channel : {Channel::kShell, Channel::kControl}) {
        stage.session->submitted.clear();
        const auto sent = client.send(channel, "kernel_info_request", {{"n", 1}});
        REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
        const Submitted& got = stage.session->submitted[0];
        CHECK(got.message.channel() == channel);
        CHECK(got.message.header().msg_id == sent.header().msg_id);
        CHECK(got.message.content_json() == R"({"n":1})");
        FakeSession::reply(got, {{"status", "ok"}});
        const protocol::Message reply = stage.receive(client, channel);
        CHECK(reply.parent().msg_id == sent.header().msg_id);
    }
}

TEST_CASE("an input_request comes back on stdin and its answer has the same origin", "[jupyter]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    ZmqTestClient other(stage.context, stage.session->connection_file);
    // The stdin connection must exist: this message only proves that.
    client.send(Channel::kStdin, "input_reply", {{"value", "early"}});
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
    client.send(Channel::kShell, "execute_request", {{"code", "input()"}});
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 2; }));
    const Submitted request = stage.session->submitted[1];
    request.origin->deliver(protocol::Message::make(
        Channel::kStdin,
        protocol::make_header("input_request", "kernel", "user"),
        protocol::to_json(request.message.header()),
        {{"prompt", "> "}, {"password", false}}));
    CHECK(stage.receive(client, Channel::kStdin).header().msg_type == "input_request");
    other.send(Channel::kStdin, "input_reply", {{"value", "from somebody else"}});
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 3; }));
    CHECK(stage.session->submitted[2].origin != request.origin);
    client.send(Channel::kStdin, "input_reply", {{"value", "yes"}});
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 4; }));
    CHECK(stage.session->submitted[3].message.channel() == Channel::kStdin);
    CHECK(stage.session->submitted[3].origin == request.origin);
}

TEST_CASE("several clients each get their own answers and all see the output", "[jupyter]") {
    Stage stage;
    constexpr std::size_t kClients = 8;
    std::vector<std::unique_ptr<ZmqTestClient>> clients;
    for (std::size_t i = 0; i < kClients; ++i) {
        clients.push_back(
            std::make_unique<ZmqTestClient>(stage.context, stage.session->connection_file));
        clients.back()->subscribe();
        CHECK(stage.receive(*clients.back(), Channel::kIopub).header().msg_type == "iopub_welcome");
        clients.back()->send(Channel::kShell, "execute_request");
    }
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == kClients; }));
    for (const Submitted& request : stage.session->submitted) {
        FakeSession::reply(request, {{"for", request.message.header().session}});
    }
    stage.session->publish("stream", {{"name", "stdout"}, {"text", "to all"}});
    for (const auto& client : clients) {
        const protocol::Message reply = stage.receive(*client, Channel::kShell);
        CHECK(reply.parse_content().value()["for"] == client->session_id);
        protocol::Message seen = stage.receive(*client, Channel::kIopub);
        while (seen.header().msg_type == "iopub_welcome") {  // of those who came later
            seen = stage.receive(*client, Channel::kIopub);
        }
        CHECK(seen.parse_content().value()["text"] == "to all");
        CHECK_FALSE(client->try_receive(Channel::kShell).has_value());
    }
}

TEST_CASE("a client that comes back with its old identity gets the answers", "[jupyter]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    client.send(Channel::kShell, "execute_request");
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
    // The old connection is still open when the new one takes its identity over (ROUTER_HANDOVER).
    ZmqTestClient again(stage.context, stage.session->connection_file);
    zmq::socket_t shell(stage.context, zmq::socket_type::dealer);
    shell.set(zmq::sockopt::routing_id, client.session_id);
    shell.set(zmq::sockopt::linger, 0);
    shell.connect(client.info.endpoint(client.info.shell_port));
    send_frames(
        shell,
        client.sign(protocol::Message::make(
            Channel::kShell,
            protocol::make_header("kernel_info_request", client.session_id, "tester"),
            nlohmann::json::object(),
            nlohmann::json::object())));
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 2; }));
    FakeSession::reply(stage.session->submitted[0], {{"status", "ok"}});
    CHECK(stage.run_until([&] { return try_receive_frames(shell).has_value(); }));
}

TEST_CASE("an answer for a client that has gone is counted, not fatal", "[jupyter]") {
    Stage stage;
    auto client = std::make_unique<ZmqTestClient>(stage.context, stage.session->connection_file);
    client->send(Channel::kShell, "execute_request");
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
    client.reset();
    REQUIRE(stage.run_until([&] {
        FakeSession::reply(stage.session->submitted[0], {{"status", "ok"}});
        return stage.count(PeerEvent::kUndeliverable) > 0;
    }));
}

TEST_CASE("an answer after the session has closed goes nowhere, quietly", "[jupyter]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    client.send(Channel::kShell, "execute_request");
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
    stage.front->on_session_closed(stage.session->id());
    FakeSession::reply(stage.session->submitted[0], {{"status", "ok"}});
    stage.session->publish("status", {{"execution_state", "dead"}});
    stage.front.reset();
    FakeSession::reply(stage.session->submitted[0], {{"status", "ok"}});
    CHECK_FALSE(client.try_receive(Channel::kShell).has_value());
}

TEST_CASE("what was answered just before the end still arrives", "[jupyter]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    client.subscribe();
    CHECK(stage.receive(client, Channel::kIopub).header().msg_type == "iopub_welcome");
    client.send(Channel::kControl, "shutdown_request");
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
    stage.session->publish("status", {{"execution_state", "idle"}});
    FakeSession::reply(stage.session->submitted[0], {{"status", "ok"}, {"restart", false}});
    stage.front->on_session_closed(stage.session->id());
    CHECK(stage.receive(client, Channel::kControl).header().msg_type == "shutdown_reply");
    CHECK(stage.receive(client, Channel::kIopub).header().msg_type == "status");
}

TEST_CASE("what is not signed with the key is refused without an answer", "[jupyter]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    const protocol::Message message = protocol::Message::make(
        Channel::kShell,
        protocol::make_header("execute_request", client.session_id, "tester"),
        nlohmann::json::object(),
        {{"code", "1"}});
    Frames frames = client.sign(message);
    SECTION("another key") {
        const auto signer = protocol::Signer::create("hmac-sha256", std::string(64, 'a')).value();
        frames[1] = signer.sign(
            message.header_json(),
            message.parent_header_json(),
            message.metadata_json(),
            message.content_json());
    }
    SECTION("no signature") {
        frames[1].clear();
    }
    SECTION("a signature cut short") {
        frames[1].pop_back();
    }
    SECTION("a signature that goes on") {
        frames[1].push_back('0');
    }
    SECTION("changed content") {
        frames[5] = R"({"code":"2"})";
    }
    SECTION("no delimiter") {
        frames.erase(frames.begin());
    }
    SECTION("content missing") {
        frames.pop_back();
    }
    SECTION("only one empty frame") {
        frames = {""};
    }
    SECTION("random bytes") {
        frames = {"\x01\x02\xff", std::string(3000, '\xfe'), "<IDS|MSG"};
    }
    SECTION("only the delimiter") {
        frames = {"<IDS|MSG>"};
    }
    check_refused(stage, client, frames);
    REQUIRE(stage.log.size() == 1);
    CHECK(stage.log[0].find("message refused: shell: ") != std::string::npos);
}

TEST_CASE("long messages are checked by another thread, in order", "[jupyter][limits]") {
    // http::kTextReadAtOnceBytesMax
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    const nlohmann::json content = {{"code", std::string(300'000, 'x')}};
    const protocol::Message first = client.send(Channel::kShell, "execute_request", content);
    client.send(Channel::kShell, "kernel_info_request");
    client.send(Channel::kShell, "complete_request", content);
    client.send(Channel::kShell, "is_complete_request");
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 4; }));
    std::vector<std::string> types;
    for (const Submitted& request : stage.session->submitted) {
        types.push_back(request.message.header().msg_type);
    }
    CHECK(
        types ==
        std::vector<std::string>{
            "execute_request", "kernel_info_request", "complete_request", "is_complete_request"});
    CHECK(stage.session->submitted[0].message.content_json() == first.content_json());
    CHECK(stage.count(PeerEvent::kRejected) == 0);
    Frames frames = client.sign(first);
    SECTION("one that is played back is refused") {
        check_refused(stage, client, frames);
    }
    SECTION("one that was changed is refused") {
        frames.back().back() = ' ';
        check_refused(stage, client, frames);
    }
    SECTION("one without a delimiter is refused") {
        frames.front() = "<IDS|MSG";
        check_refused(stage, client, frames);
    }
}

TEST_CASE("a recorded message is refused when it is played back", "[jupyter]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    const protocol::Message sent = client.send(Channel::kShell, "execute_request");
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
    check_refused(stage, client, client.sign(sent));
}

TEST_CASE("a message of too many frames is refused, whatever it says", "[jupyter]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    Frames frames = client.sign(protocol::Message::make(
        Channel::kShell,
        protocol::make_header("comm_msg", client.session_id, "tester"),
        nlohmann::json::object(),
        nlohmann::json::object()));
    // The ROUTER puts the identity in front: one frame.
    const std::size_t room = limits::kZmqFramesMax - 1 - frames.size();
    SECTION("the most buffers a message may have pass") {
        frames.insert(frames.end(), limits::kBuffersMax, "b");
        send_frames(client.shell, frames);
        REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
        CHECK(stage.session->submitted[0].message.buffer_count() == limits::kBuffersMax);
    }
    SECTION("one buffer more does not") {
        frames.insert(frames.end(), limits::kBuffersMax + 1, "b");
        check_refused(stage, client, frames);
    }
    SECTION("nor does one frame more than ZeroMQ may bring") {
        frames.insert(frames.end(), room + 1, "b");
        check_refused(stage, client, frames);
    }
}

TEST_CASE("frames that are too large together are thrown away", "[jupyter]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    const std::string half(limits::kFrameBytesMax / 2, 'x');
    check_refused(stage, client, {half, half + "y"});
}

TEST_CASE("one frame beyond the limit costs its sender the connection", "[jupyter]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    zmq::socket_t hostile(stage.context, zmq::socket_type::dealer);
    hostile.set(zmq::sockopt::linger, 0);
    hostile.connect(client.info.endpoint(client.info.shell_port));
    send_frames(hostile, {std::string(limits::kFrameBytesMax + 1, 'x')});
    client.send(Channel::kShell, "kernel_info_request");
    REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == 1; }));
    CHECK(stage.count(PeerEvent::kSocketFailed) == 0);
}

TEST_CASE("the heartbeat echoes, also after a client that left in the middle", "[jupyter]") {
    Stage stage;
    {
        ZmqTestClient gone(stage.context, stage.session->connection_file);
        send_frames(gone.heartbeat, {"ping"});
    }
    ZmqTestClient client(stage.context, stage.session->connection_file);
    for (const std::string beat : {"ping", "", "\x01\x02"}) {
        send_frames(client.heartbeat, {beat});
        std::optional<Frames> echo;
        REQUIRE(stage.run_until([&] {
            echo = try_receive_frames(client.heartbeat);
            return echo.has_value();
        }));
        CHECK(*echo == Frames{beat});
    }
}

TEST_CASE("a beat has at most limits::kHeartbeatFramesMax frames", "[jupyter][limits]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    zmq::socket_t beats(stage.context, zmq::socket_type::dealer);
    beats.set(zmq::sockopt::linger, 0);
    beats.connect(client.info.endpoint(client.info.hb_port));
    // The ROUTER puts the identity in front: one frame.
    send_frames(beats, Frames(limits::kHeartbeatFramesMax, "too many"));
    send_frames(beats, Frames(limits::kHeartbeatFramesMax - 1, "most"));
    std::optional<Frames> echo;
    REQUIRE(stage.run_until([&] {
        echo = try_receive_frames(beats);
        return echo.has_value();
    }));
    CHECK(*echo == Frames(limits::kHeartbeatFramesMax - 1, "most"));
}

TEST_CASE("a beat of more than limits::kHeartbeatBytesMax is not taken", "[jupyter][limits]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    zmq::socket_t beats(stage.context, zmq::socket_type::dealer);
    beats.set(zmq::sockopt::linger, 0);
    beats.connect(client.info.endpoint(client.info.hb_port));
    std::optional<Frames> echo;
    const auto echoed = [&] {
        echo = try_receive_frames(beats);
        return echo.has_value();
    };
    const std::string most(limits::kHeartbeatBytesMax, 'x');
    send_frames(beats, {most});
    REQUIRE(stage.run_until(echoed));
    CHECK(*echo == Frames{most});

    send_frames(beats, {most + "y"});
    // ZeroMQ drops the connection and the messages on their way: ask until the new one answers.
    REQUIRE(stage.run_until([&] {
        beats.send(zmq::str_buffer("again"), zmq::send_flags::dontwait);
        return echoed();
    }));
    CHECK(*echo == Frames{"again"});
    CHECK(stage.count(PeerEvent::kSocketFailed) == 0);
}

TEST_CASE("a dead kernel has no heartbeat", "[jupyter]") {
    Stage stage;
    ZmqTestClient client(stage.context, stage.session->connection_file);
    zmq::socket_t beats(stage.context, zmq::socket_type::dealer);
    beats.set(zmq::sockopt::linger, 0);
    beats.connect(client.info.endpoint(client.info.hb_port));
    stage.session->kernel_state = session::KernelState::kDead;
    send_frames(beats, {"while dead"});
    // The same connection's shell message cannot overtake another socket's, so ask the front to
    // look at everything several times before the kernel lives again.
    for (int i = 0; i < 20; ++i) {
        const std::size_t arrived = stage.session->submitted.size();
        client.send(Channel::kShell, "kernel_info_request");
        REQUIRE(stage.run_until([&] { return stage.session->submitted.size() == arrived + 1; }));
    }
    stage.session->kernel_state = session::KernelState::kIdle;
    send_frames(beats, {"alive"});
    std::optional<Frames> echo;
    REQUIRE(stage.run_until([&] {
        echo = try_receive_frames(beats);
        return echo.has_value();
    }));
    CHECK(*echo == Frames{"alive"});
}
