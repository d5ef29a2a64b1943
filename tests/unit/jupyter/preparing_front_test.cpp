// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/preparing_front.hpp"

#include "kernel-manager/jupyter/zmq/zmq_session.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/jupyter/zmq_client.hpp"

#include <catch2/catch.hpp>

#include <utility>

namespace cellkeep::jupyter::test {
namespace {

using protocol::Channel;
using protocol::Message;

struct PreparingStage {
    PreparingStage() {
        const auto named = name_ipc_sockets(directory.path() + "/k");
        REQUIRE(named.has_value());
        const std::string file = directory.path() + "/theirs.json";
        REQUIRE(protocol::write_connection_file(file, named.value()).has_value());
        auto bound = bind_given_sockets(context, named.value(), limits::kZmqHighWaterMark);
        REQUIRE(bound.has_value());
        auto created = PreparingFront::create(
            io,
            std::move(bound).value(),
            {.kernel_info = {{"status", "ok"}, {"implementation", "preparing"}},
             .notice = "wait\n",
             .on_shutdown_answered = [this] { ++shutdowns; }});
        REQUIRE(created.has_value());
        front = std::move(created).value();
        client.emplace(clients, file);
        client->subscribe();
    }
    Message receive(Channel channel) {
        std::optional<Message> came;
        REQUIRE(run_until(io, [&] {
            came = client->try_receive(channel);
            return came.has_value();
        }));
        return *came;
    }
    /// The next of this type for the request.
    Message published(const Message& request, const std::string& type) {
        while (true) {
            Message came = receive(Channel::kIopub);
            if (came.header().msg_type == type && came.parent().msg_id == request.header().msg_id) {
                return came;
            }
        }
    }
    /// Once something sent later was answered, what came before has been seen.
    void settle() {
        (void)client->send(Channel::kShell, "kernel_info_request");
        while (receive(Channel::kShell).header().msg_type != "kernel_info_reply") {
        }
    }

    TemporaryDirectory directory;
    boost::asio::io_context io;
    ZmqContext context = ZmqContext::create().value();
    std::shared_ptr<PreparingFront> front;
    int shutdowns = 0;
    zmq::context_t clients;
    std::optional<ZmqTestClient> client;
};

TEST_CASE("a kernel that is being prepared lives", "[jupyter][preparing]") {
    PreparingStage stage;
    const auto channel = GENERATE(Channel::kShell, Channel::kControl);
    const Message asked = stage.client->send(channel, "kernel_info_request");
    const Message answer = stage.receive(channel);
    CHECK(answer.header().msg_type == "kernel_info_reply");
    CHECK(answer.parent().msg_id == asked.header().msg_id);
    CHECK(answer.parse_content().value()["implementation"] == "preparing");
    send_frames(stage.client->heartbeat, {"ping"});
    CHECK(run_until(
        stage.io, [&] { return try_receive_frames(stage.client->heartbeat) == Frames{"ping"}; }));
}

TEST_CASE("the first cell says why it waits, and runs later", "[jupyter][preparing]") {
    PreparingStage stage;
    stage.settle();  // the subscription has come
    const Message first = stage.client->send(Channel::kShell, "execute_request", {{"code", "1"}});
    const Message notice = stage.published(first, "stream");
    CHECK(notice.parse_content().value()["text"] == "wait\n");
    CHECK(notice.parse_content().value()["name"] == "stderr");
    const Message second = stage.client->send(Channel::kShell, "execute_request", {{"code", "2"}});
    stage.settle();
    PreparingFront::Handover came = stage.front->hand_over();
    REQUIRE(came.held.size() == 2);
    CHECK(came.held[0].message.header().msg_id == first.header().msg_id);
    CHECK(came.held[1].message.header().msg_id == second.header().msg_id);
    // A session takes them over, with the sockets.
    const auto session = std::make_shared<FakeSession>();
    ZmqSessionConfig config;
    config.stall_max = limits::kZmqStallMax;
    auto served = ZmqSession::create(stage.io, std::move(came.sockets), session, std::move(config));
    REQUIRE(served.has_value());
    for (HeldRequest& request : came.held) {
        served.value()->submit(std::move(request.identities), std::move(request.message));
    }
    REQUIRE(session->submitted.size() == 2);
    FakeSession::reply(session->submitted[0], {{"status", "ok"}});
    CHECK(stage.receive(Channel::kShell).parent().msg_id == first.header().msg_id);
}

TEST_CASE("requests that wait have a bound", "[jupyter][preparing]") {
    PreparingStage stage;
    for (std::size_t i = 0; i < kHeldRequestsMax; ++i) {
        (void)stage.client->send(Channel::kShell, "is_complete_request", {{"code", ""}});
        (void)stage.io.poll();
    }
    (void)stage.client->send(Channel::kShell, "is_complete_request", {{"code", ""}});
    stage.io.run_for(4 * kPreparingTick);
    // Control still answers, whatever waits in the other socket.
    (void)stage.client->send(Channel::kControl, "usage_request");
    CHECK(stage.receive(Channel::kControl).parse_content().value()["ename"] == "KernelBusy");
    (void)stage.client->send(Channel::kControl, "kernel_info_request");
    CHECK(stage.receive(Channel::kControl).header().msg_type == "kernel_info_reply");
    CHECK(stage.front->hand_over().held.size() == kHeldRequestsMax);
}

TEST_CASE("an interrupt ends the cells that wait", "[jupyter][preparing]") {
    PreparingStage stage;
    const bool by_message = GENERATE(true, false);
    const Message cell = stage.client->send(Channel::kShell, "execute_request", {{"code", "1"}});
    (void)stage.client->send(Channel::kShell, "comm_info_request");
    stage.settle();
    if (by_message) {
        (void)stage.client->send(Channel::kControl, "interrupt_request");
        CHECK(stage.receive(Channel::kControl).header().msg_type == "interrupt_reply");
    } else {
        stage.front->interrupt();
    }
    const Message answer = stage.receive(Channel::kShell);
    CHECK(answer.parent().msg_id == cell.header().msg_id);
    CHECK(answer.parse_content().value()["ename"] == "KeyboardInterrupt");
    CHECK(stage.front->hand_over().held.size() == 1);
}

TEST_CASE("a shutdown is answered, who cannot sign is not", "[jupyter][preparing]") {
    PreparingStage stage;
    Frames forged = stage.client->sign(Message::make(
        Channel::kControl,
        protocol::make_header("shutdown_request", "s", "u"),
        nlohmann::json::object(),
        {{"restart", false}}));
    forged[1] = std::string(64, 'a');
    send_frames(stage.client->control, forged);
    stage.settle();
    CHECK(stage.shutdowns == 0);
    (void)stage.client->send(Channel::kControl, "shutdown_request", {{"restart", false}});
    CHECK(stage.receive(Channel::kControl).header().msg_type == "shutdown_reply");
    CHECK(run_until(stage.io, [&] { return stage.shutdowns == 1; }));
}

}  // namespace
}  // namespace cellkeep::jupyter::test
