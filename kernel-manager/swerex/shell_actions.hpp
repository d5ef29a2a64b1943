// SPDX-License-Identifier: Apache-2.0
//
// What a client does in a shell that there is, with SWE-ReX's answers. The shell must be held by
// the caller. io_context thread only.
#pragma once

#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/session/session.hpp"
#include "kernel-manager/swerex/orders.hpp"
#include "kernel-manager/swerex/shell.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace cellkeep::swerex {

using ShellResponse = boost::asio::awaitable<http::Response>;

/// What the files say that it reads first.
ShellResponse read_sources(std::shared_ptr<Shell> shell, StartOrder order);
/// A command that comes back to the prompt, whatever is in it: the shell reads it from a file of
/// the workspace, after a look at its syntax.
ShellResponse run_command(
    std::shared_ptr<session::Session> session, std::shared_ptr<Shell> shell, ShellOrder order);
/// A line for a program that goes on, or the last one of such a program.
ShellResponse run_interactive(std::shared_ptr<Shell> shell, ShellOrder order);
ShellResponse interrupt(std::shared_ptr<Shell> shell, ShellOrder order);

}  // namespace cellkeep::swerex
