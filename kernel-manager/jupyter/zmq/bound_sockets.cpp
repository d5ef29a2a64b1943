// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/bound_sockets.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <set>

namespace cellkeep::jupyter {
namespace {

using protocol::ConnectionInfo;
using protocol::Transport;

constexpr std::size_t kKeyBytes = 32;

/// "tcp://127.0.0.1:40123" to 40123.
Result<std::uint16_t> parse_port(const std::string& endpoint) {
    const std::size_t colon = endpoint.rfind(':');
    std::uint16_t port = 0;
    const char* end = endpoint.data() + endpoint.size();
    const auto parsed = std::from_chars(endpoint.data() + colon + 1, end, port);
    if (parsed.ec != std::errc() || parsed.ptr != end || port == 0) {
        return Error(ErrorCode::kSystem, "ZMQ_LAST_ENDPOINT names no port: " + endpoint);
    }
    return port;
}

/// Binds one socket, and where the port is not known yet, writes it down.
using Bind = std::function<Status(ZmqSocket& socket, std::uint16_t& port)>;

Result<ZmqSocket> open(
    const ZmqContext& context,
    const ZmqSocketOptions& options,
    std::uint16_t& port,
    const Bind& bind) {
    BOOST_OUTCOME_TRY(ZmqSocket socket, ZmqSocket::create(context, options));
    BOOST_OUTCOME_TRY(bind(socket, port));
    return socket;
}

Result<BoundSockets> open_all(
    const ZmqContext& context, ConnectionInfo connection, int high_water_mark, const Bind& bind) {
    constexpr ZmqSocketOptions kRouter{
        .type = ZmqSocketType::kRouter,
        .high_water_mark = limits::kZmqHighWaterMark,
        .receive_high_water_mark = limits::kZmqReceiveHighWaterMark,
        .frame_bytes_max = limits::kFrameBytesMax,
        .linger = limits::kZmqLinger};
    const ZmqSocketOptions publisher{
        .type = ZmqSocketType::kXpub,
        .high_water_mark = high_water_mark,
        .receive_high_water_mark = limits::kZmqReceiveHighWaterMark,
        .frame_bytes_max = limits::kZmqSubscriptionBytesMax,
        .linger = limits::kZmqLinger};
    constexpr ZmqSocketOptions kHeartbeat{
        .type = ZmqSocketType::kRouter,
        .high_water_mark = limits::kHeartbeatHighWaterMark,
        .receive_high_water_mark = limits::kHeartbeatHighWaterMark,
        .frame_bytes_max = limits::kHeartbeatBytesMax,
        .linger = limits::kZmqLinger};
    // Shell last: who reaches it, reaches what it publishes on the way to an answer.
    BOOST_OUTCOME_TRY(ZmqSocket iopub, open(context, publisher, connection.iopub_port, bind));
    BOOST_OUTCOME_TRY(ZmqSocket heartbeat, open(context, kHeartbeat, connection.hb_port, bind));
    BOOST_OUTCOME_TRY(ZmqSocket stdin_socket, open(context, kRouter, connection.stdin_port, bind));
    BOOST_OUTCOME_TRY(ZmqSocket control, open(context, kRouter, connection.control_port, bind));
    BOOST_OUTCOME_TRY(ZmqSocket shell, open(context, kRouter, connection.shell_port, bind));
    return BoundSockets{
        std::move(connection),
        {},
        std::move(shell),
        std::move(iopub),
        std::move(stdin_socket),
        std::move(control),
        std::move(heartbeat)};
}

std::string ipc_file(const ConnectionInfo& connection, std::uint16_t port) {
    return connection.ip + "-" + std::to_string(port);
}

std::array<std::uint16_t, 5> ports_of(const ConnectionInfo& connection) {
    return {
        connection.shell_port,
        connection.iopub_port,
        connection.stdin_port,
        connection.control_port,
        connection.hb_port};
}

}  // namespace

Status check_endpoint_length(const ConnectionInfo& connection) {
    if (connection.transport != Transport::kIpc) {
        return ok();
    }
    for (const std::uint16_t port : ports_of(connection)) {
        const std::string endpoint = connection.endpoint(port);
        if (endpoint.size() >= kIpcEndpointBytesMax) {
            return Error(
                ErrorCode::kInvalidArgument,
                "the ipc endpoint " + endpoint + " has " + std::to_string(endpoint.size()) +
                    " bytes; it must have fewer than " + std::to_string(kIpcEndpointBytesMax),
                "Choose a shorter directory for the sockets, or the tcp transport.");
        }
    }
    return ok();
}

Status check_given(const ConnectionInfo& connection) {
    if (connection.key.empty()) {
        return Error(
            ErrorCode::kInvalidArgument,
            "the connection file has no key, so that every client that connects could run code",
            "Let the Jupyter program make a key (Session.key must not be empty).");
    }
    const auto ports = ports_of(connection);
    if (std::set<std::uint16_t>(ports.begin(), ports.end()).size() != ports.size()) {
        return Error(
            ErrorCode::kInvalidArgument, "the connection file names a port for two sockets");
    }
    return check_endpoint_length(connection);
}

OwnedFiles& OwnedFiles::operator=(OwnedFiles&& other) noexcept {
    if (this != &other) {
        remove();
        paths_ = std::exchange(other.paths_, {});
    }
    return *this;
}

void OwnedFiles::remove() {
    for (const std::string& path : std::exchange(paths_, {})) {
        // Ignored: it was never made, or libzmq took it away already.
        (void)::unlink(path.c_str());
    }
}

Result<ConnectionInfo> name_ipc_sockets(const std::string& prefix) {
    ConnectionInfo connection;
    connection.transport = Transport::kIpc;
    connection.ip = prefix;
    BOOST_OUTCOME_TRY(connection.key, secret_hex(kKeyBytes));
    // As jupyter_client does: the "ports" of ipc are small numbers after the prefix.
    connection.shell_port = 1;
    connection.iopub_port = 2;
    connection.stdin_port = 3;
    connection.control_port = 4;
    connection.hb_port = 5;
    BOOST_OUTCOME_TRY(check_endpoint_length(connection));
    return connection;
}

Result<BoundSockets> bind_loopback_sockets(const ZmqContext& context, int high_water_mark) {
    ConnectionInfo connection;
    connection.transport = Transport::kTcp;
    connection.ip = kLoopbackAddress;
    BOOST_OUTCOME_TRY(connection.key, secret_hex(kKeyBytes));
    const Bind bind = [](ZmqSocket& socket, std::uint16_t& port) -> Status {
        // Bound first and asked for its port afterwards, so that no other program can take it
        // between.
        BOOST_OUTCOME_TRY(socket.bind("tcp://" + std::string(kLoopbackAddress) + ":*"));
        BOOST_OUTCOME_TRY(const std::string endpoint, socket.last_endpoint());
        BOOST_OUTCOME_TRY(port, parse_port(endpoint));
        return ok();
    };
    return open_all(context, std::move(connection), high_water_mark, bind);
}

Result<BoundSockets> bind_given_sockets(
    const ZmqContext& context, ConnectionInfo connection, int high_water_mark) {
    BOOST_OUTCOME_TRY(check_given(connection));
    ConnectionInfo place = connection;
    if (place.transport == Transport::kTcp && place.ip == "localhost") {
        place.ip =
            kLoopbackAddress;  // zmq_tcp(7): bind takes an address or an interface, not a name
    }
    OwnedFiles files;
    const Bind bind = [&files, &place](ZmqSocket& socket, std::uint16_t& port) -> Status {
        const std::string endpoint = place.endpoint(port);
        if (const Status bound = socket.bind(endpoint); bound.has_error()) {
            return Error(ErrorCode::kConflict, bound.error().message());
        }
        if (place.transport == Transport::kIpc) {
            files.add(ipc_file(place, port));
        }
        return ok();
    };
    BOOST_OUTCOME_TRY(
        BoundSockets sockets, open_all(context, std::move(connection), high_water_mark, bind));
    sockets.ipc_files = std::move(files);
    return sockets;
}

}  // namespace cellkeep::jupyter
