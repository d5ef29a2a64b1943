// SPDX-License-Identifier: Apache-2.0
//
// What the ZeroMQ front knows of its sessions on their way from one program in the server's process
// to another: where the sockets are, the keys, what is needed for clients to notice no more than a
// lost connection. Values; the sockets themselves cannot pass, because they are libzmq's.
#pragma once

#include "kernel-manager/jupyter/zmq/waiting_requests.hpp"
#include "protocol/connection_file.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::jupyter {

/// What was held of one session's requests, and what each of its three sockets had at the end.
inline constexpr std::size_t kPassedRequestsMax = 4 * kWaitingRequestsMax;

/// What names, keys and numbers of a session take besides, about.
inline constexpr std::size_t kPassedZmqBesidesBytes = 1U << 10U;

struct PassedZmqSession {
    protocol::ConnectionInfo connection;
    bool bound = false;             // its sockets were there, and clients may have known them
    std::size_t subscriptions = 0;  // of clients that come back
    std::vector<WaitingRequest> requests;
    std::string seen;  // protocol::Signer's
};

struct PassedZmq {
    std::string socket_directory;                                   // of the ipc sockets
    std::map<std::string, PassedZmqSession, std::less<>> sessions;  // by their ids
    /// Which of the descriptors of front ends watches the connection files.
    std::optional<std::size_t> watch;
};

nlohmann::json write_zmq(const PassedZmq& passed);
/// kProtocol for another form, or for a session that could not be served as it is written down.
Result<PassedZmq> read_zmq(const nlohmann::json& text);

}  // namespace cellkeep::jupyter
