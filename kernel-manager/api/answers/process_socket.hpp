// SPDX-License-Identifier: Apache-2.0
//
// A process over a WebSocket: its output as the events of process_answers.hpp, one text message
// each; what it reads as binary messages, or as text messages like {"type": "stdin", "text": "x"},
// {"type": "resize", "rows": 24, "cols": 80}, {"type": "signal", "name": "SIGINT"}. What cannot be
// done is answered with {"type": "refused", …} and ends nothing. The socket ends with the process.
#pragma once

#include "kernel-manager/http/websocket/websocket.hpp"
#include "kernel-manager/process/command.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/work_thread.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <memory>

namespace cellkeep::api {

/// after: the bytes of output that the client has. work_thread: reads long messages; null: they are
/// read at once. While it runs its client counts as connected.
boost::asio::awaitable<void> serve_process(
    std::shared_ptr<http::WebSocket> socket,
    std::shared_ptr<session::Session> session,
    std::shared_ptr<process::Command> command,
    std::uint64_t after,
    WorkThread* work_thread);

}  // namespace cellkeep::api
