// SPDX-License-Identifier: Apache-2.0
//
// A session's proxy on its way from one program in the server's process to another: its listener,
// what it allows, what it has counted, and the connections that go on. Never: a secret's value,
// which the other program has from its own configuration. Values and descriptors.
#pragma once

#include "kernel-manager/egress/limits.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/egress/target.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::egress {

/// An opaque tunnel.
struct PassedTunnel {
    /// From one side to the other.
    struct Way {
        std::string held;    // has been read, and is not yet written
        bool ended = false;  // the one says no more, and the other knows it
    };
    Authority target;
    std::string address;      // that was dialled
    std::string server_name;  // of its ClientHello; may be empty
    std::uint64_t bytes_up = 0;
    std::uint64_t bytes_down = 0;
    std::chrono::steady_clock::time_point began_at;
    Way up;
    Way down;
};

struct PassedConnection {
    UniqueFd client;
    UniqueFd host;                       // of a tunnel
    std::optional<PassedTunnel> tunnel;  // nothing: it waits for a request
};

struct PassedProxy {
    using Moments = std::vector<std::chrono::steady_clock::time_point>;

    UniqueFd listener;
    NetworkPolicy policy;
    Traffic traffic;
    Moments requests;  // of the last minute, the oldest first
    Moments refusals;  // that got a line of the log
    std::uint64_t suppressed = 0;
    std::vector<PassedConnection> connections;
};

/// What numbers and names of a proxy or of a connection take, about.
inline constexpr std::size_t kPassedProxyBytes = 1U << 10U;
inline constexpr std::size_t kPassedMomentBytes = 9;

/// A socket that listens.
bool is_listening(const UniqueFd& fd);

/// Its descriptors are put behind those in fds.
nlohmann::json write_proxy(PassedProxy& proxy, std::vector<UniqueFd>& fds);
/// kProtocol for another form, for what no proxy of ours leaves, or for a descriptor that is not
/// such a socket. now: no moment is later.
Result<PassedProxy> read_proxy(
    const nlohmann::json& text,
    std::vector<UniqueFd> fds,
    std::chrono::steady_clock::time_point now);

}  // namespace cellkeep::egress
