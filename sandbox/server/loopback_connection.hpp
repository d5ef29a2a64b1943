// SPDX-License-Identifier: Apache-2.0
//
// A TCP socket of the session's own network: the request and the answer of
// Sandbox::begin_connection(). Its peer is the guest's: whatever it says is only ever the guest's
// word. Any one thread.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/shared/loopback.hpp"

#include <cstdint>
#include <optional>

namespace cellkeep::sandbox {

class InitChannel;

/// Returns the socket on which take_connection() finds the answer. Does not wait.
Result<UniqueFd> ask_for_connection(InitChannel& channel, std::uint16_t port, Loopback address);

/// The socket, which is connected or about to be; it does not block. nullopt: pid 1 has not
/// answered. kNotFound: nothing listens there; kPermissionDenied: the port is the sandbox's own;
/// kUnavailable: pid 1 is gone.
Result<std::optional<UniqueFd>> take_connection(int answer_fd);

/// Once the socket can be written to: whether it is connected. kNotFound: nothing listens there.
Status check_connection(int socket);

}  // namespace cellkeep::sandbox
