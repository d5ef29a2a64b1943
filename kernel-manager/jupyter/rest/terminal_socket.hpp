// SPDX-License-Identifier: Apache-2.0
//
// A terminal as Jupyter's clients speak to it (terminado): arrays of JSON, one text message each.
// The server sends ["setup", {}], ["stdout", TEXT] and, at the end, ["disconnect", 1]; the client
// ["stdin", TEXT] and ["set_size", ROWS, COLUMNS, …]. What is not understood is ignored.
#pragma once

#include "kernel-manager/http/websocket/websocket.hpp"
#include "kernel-manager/process/command.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::jupyter {

/// A client's message, if it is one.
struct TerminalMessage {
    std::optional<std::string> input;
    std::optional<process::TerminalSize> size;
};
TerminalMessage read_terminal_message(std::string_view text);

/// Begins with what is kept of the output. work_thread: reads long messages; null: they are read at
/// once. While it runs its client counts as connected.
boost::asio::awaitable<void> serve_terminal(
    std::shared_ptr<http::WebSocket> socket,
    std::shared_ptr<session::Session> session,
    std::shared_ptr<process::Command> command,
    WorkThread* work_thread);

}  // namespace cellkeep::jupyter
