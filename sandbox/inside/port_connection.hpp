// SPDX-License-Identifier: Apache-2.0
//
// A connection to a server of the session's own network, for the server outside. Part of pid 1.
// Rules of child_setup.hpp apply: no allocation.
#pragma once

#include "sandbox/inside/init_socket.hpp"
#include "sandbox/shared/messages.hpp"

namespace cellkeep::sandbox {

/// kConnect: begins a connection to the loopback address and the port of the header, and sends the
/// socket, or an errno, through the request's one descriptor. Waits for nothing: that is up to
/// the server. A request of another form has no answer.
void handle_connect(const ReceivedRequest& request, const RequestHeader& header);

}  // namespace cellkeep::sandbox
