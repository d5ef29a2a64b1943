// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/bound_sockets.hpp"

#include "kernel-manager/jupyter/zmq/zmq_session.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/jupyter/zmq_client.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include <filesystem>
#include <utility>

using namespace cellkeep;
using namespace cellkeep::jupyter;
using namespace cellkeep::jupyter::test;
using protocol::Channel;
using protocol::ConnectionInfo;
using protocol::Transport;

namespace {

constexpr int kHighWaterMark = limits::kZmqHighWaterMark;

/// A connection file as a Jupyter program writes it: free endpoints, and a key.
ConnectionInfo given(Transport transport, const std::string& directory) {
    if (transport == Transport::kIpc) {
        auto named = name_ipc_sockets(directory + "/k");
        REQUIRE(named.has_value());
        return named.value();
    }
    // Of its own: a socket is closed for certain only when its context has ended.
    const ZmqContext context = ZmqContext::create().value();
    auto fresh = bind_loopback_sockets(context, kHighWaterMark);
    REQUIRE(fresh.has_value());
    return fresh.value().connection;
}

std::size_t files_in(const std::string& directory) {
    const std::filesystem::directory_iterator begin(directory);
    return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator()));
}

/// A session served at the addresses of a connection file that another program wrote.
struct GivenStage {
    explicit GivenStage(Transport transport) {
        const ConnectionInfo info = given(transport, directory.path());
        connection_file = directory.path() + "/theirs.json";
        REQUIRE(protocol::write_connection_file(connection_file, info).has_value());
        auto bound = bind_given_sockets(context, info, kHighWaterMark);
        INFO((bound.has_error() ? bound.error().message() : "bound"));
        REQUIRE(bound.has_value());
        sockets.emplace(std::move(bound).value());
    }

    void serve() {
        ZmqSessionConfig config;
        config.stall_max = limits::kZmqStallMax;
        config.on_shutdown_answered = [this] { ++shutdowns; };
        auto created = ZmqSession::create(io, std::move(*sockets), session, std::move(config));
        REQUIRE(created.has_value());
        front = std::move(created).value();
    }

    TemporaryDirectory directory;
    boost::asio::io_context io;
    ZmqContext context = ZmqContext::create().value();
    std::string connection_file;
    std::optional<BoundSockets> sockets;
    std::shared_ptr<FakeSession> session = std::make_shared<FakeSession>();
    std::shared_ptr<ZmqSession> front;
    int shutdowns = 0;
    zmq::context_t clients;
};

}  // namespace

TEST_CASE("a request that comes before the session waits for it", "[jupyter][bound]") {
    GivenStage stage(GENERATE(Transport::kTcp, Transport::kIpc));
    ZmqTestClient client(stage.clients, stage.connection_file);
    client.subscribe();
    const protocol::Message sent = client.send(Channel::kShell, "kernel_info_request");
    stage.serve();
    REQUIRE(run_until(stage.io, [&] { return stage.session->submitted.size() == 1; }));
    CHECK(stage.session->submitted[0].message.header().msg_id == sent.header().msg_id);
    FakeSession::reply(stage.session->submitted[0], {{"status", "ok"}});
    REQUIRE(run_until(stage.io, [&] { return client.try_receive(Channel::kShell).has_value(); }));
    REQUIRE(run_until(stage.io, [&] { return client.try_receive(Channel::kIopub).has_value(); }));
    send_frames(client.heartbeat, {"ping"});
    CHECK(run_until(
        stage.io, [&] { return try_receive_frames(client.heartbeat) == Frames{"ping"}; }));
}

TEST_CASE("another program's connection file stays, the sockets go", "[jupyter][bound]") {
    GivenStage stage(Transport::kIpc);
    CHECK(files_in(stage.directory.path()) == 6);
    stage.serve();
    CHECK(stage.session->connection_file.empty());
    stage.front->close();
    CHECK(files_in(stage.directory.path()) == 1);
    CHECK(::access(stage.connection_file.c_str(), F_OK) == 0);
}

TEST_CASE("bound sockets that no server uses leave no files", "[jupyter][bound]") {
    GivenStage stage(Transport::kIpc);
    stage.sockets.reset();
    CHECK(files_in(stage.directory.path()) == 1);
}

TEST_CASE("the owner is notified of a shutdown once it is answered", "[jupyter][bound]") {
    GivenStage stage(Transport::kIpc);
    stage.serve();
    ZmqTestClient client(stage.clients, stage.connection_file);
    const bool restart = GENERATE(true, false);
    client.send(Channel::kControl, "shutdown_request", {{"restart", restart}});
    REQUIRE(run_until(stage.io, [&] { return stage.session->submitted.size() == 1; }));
    CHECK(stage.shutdowns == 0);
    FakeSession::reply(stage.session->submitted[0], {{"status", "ok"}, {"restart", restart}});
    CHECK(stage.shutdowns == 0);  // never from inside the session
    REQUIRE(run_until(stage.io, [&] { return stage.shutdowns == 1; }));
    CHECK(run_until(stage.io, [&] { return client.try_receive(Channel::kControl).has_value(); }));
}

TEST_CASE("the name localhost is bound as the loopback address", "[jupyter][bound]") {
    const ZmqContext context = ZmqContext::create().value();
    ConnectionInfo info = given(Transport::kTcp, "/unused");
    info.ip = "localhost";
    const auto bound = bind_given_sockets(context, info, kHighWaterMark);
    REQUIRE(bound.has_value());
    CHECK(
        bound.value().shell.last_endpoint().value() ==
        "tcp://127.0.0.1:" + std::to_string(info.shell_port));
}

TEST_CASE("connections that must not or cannot be served are refused", "[jupyter][bound]") {
    const ZmqContext context = ZmqContext::create().value();
    const TemporaryDirectory directory;
    ConnectionInfo info = given(Transport::kIpc, directory.path());
    std::string reason;
    auto code = ErrorCode::kInvalidArgument;
    std::optional<BoundSockets> holder;
    SECTION("no key") {
        info.key.clear();
        reason = "no key";
    }
    SECTION("two sockets at one port") {
        info.hb_port = info.shell_port;
        reason = "two sockets";
    }
    SECTION("an ipc path that is too long") {
        info.ip.append(kIpcEndpointBytesMax, 'x');
        reason = "fewer than 107";
    }
    SECTION("a directory that is not there") {
        info.ip = directory.path() + "/none/k";
        code = ErrorCode::kConflict;
        reason = "/none/k-";
    }
    SECTION("a tcp port that is taken") {
        info = given(Transport::kTcp, directory.path());
        auto first = bind_given_sockets(context, info, kHighWaterMark);
        REQUIRE(first.has_value());
        holder.emplace(std::move(first).value());
        code = ErrorCode::kConflict;
        reason = "127.0.0.1:" + std::to_string(info.iopub_port);  // the first
    }
    SECTION("an address of another machine") {
        info = given(Transport::kTcp, directory.path());
        info.ip = "192.0.2.1";  // RFC 5737: for documentation only
        code = ErrorCode::kConflict;
        reason = "192.0.2.1";
    }
    const auto bound = bind_given_sockets(context, info, kHighWaterMark);
    REQUIRE(bound.has_error());
    INFO(bound.error().message());
    CHECK(bound.error().code() == code);
    CHECK(bound.error().message().find(reason) != std::string::npos);
    CHECK(files_in(directory.path()) == 0);
}
