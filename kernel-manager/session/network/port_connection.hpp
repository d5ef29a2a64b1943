// SPDX-License-Identifier: Apache-2.0
//
// Connections to servers that code has started inside, from the request to pid 1 to a connected
// socket. io_context thread only.
#pragma once

#include "kernel-manager/session/connected_clients.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace cellkeep::session {

/// How long a server inside may take to let a connection in, pid 1's answer included. One that has
/// as many waiting as it wants (listen(2)) lets none in.
inline constexpr std::chrono::seconds kPortConnectPatience{5};

/// answer: of Sandbox::begin_connection(). The socket that is returned does not block. kNotFound:
/// nothing listens there; kPermissionDenied: the port is the sandbox's own; kTimeout: not within
/// the patience; kUnavailable: the sandbox is gone.
boost::asio::awaitable<Result<UniqueFd>> finish_port_connection(
    UniqueFd answer, std::chrono::milliseconds patience);

class PortConnector {
 public:
    struct Hooks {
        std::function<bool()> has_ended;  // the session
        std::function<void()> use;        // counts as use and wakes what is frozen
        std::function<void()> answered;   // the last visitor that waited has its answer
    };

    /// The sandbox must outlive this.
    PortConnector(sandbox::Sandbox& sandbox, Hooks hooks);
    PortConnector(const PortConnector&) = delete;
    PortConnector& operator=(const PortConnector&) = delete;
    ~PortConnector() = default;

    /// As Session::connect_port(). owner: of this; it stays alive until the answer.
    boost::asio::awaitable<Result<UniqueFd>> connect(
        std::shared_ptr<const void> owner, std::uint16_t port);
    /// A visitor waits for an answer for as long as what this returns lives.
    std::shared_ptr<void> hold_awake() { return awaited_.add(); }
    std::size_t awaited() const { return awaited_.count(); }

 private:
    boost::asio::awaitable<Result<UniqueFd>> connect_to(
        std::uint16_t port, sandbox::Loopback address);

    sandbox::Sandbox& sandbox_;
    const Hooks hooks_;
    ConnectedClients awaited_;
};

}  // namespace cellkeep::session
