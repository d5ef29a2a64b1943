// SPDX-License-Identifier: Apache-2.0
//
// The server's side of the gate through which a process leaves for a branch
// (sandbox/shared/sleep_messages.hpp). What comes through it is a guest's.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <sys/types.h>

#include <chrono>

namespace cellkeep::session {

/// Lets the process go and waits for its report: its number in the branch. kSystem: a step of it
/// failed; kProtocol: it ended or said nonsense; kTimeout. gate: ours, which does not block.
boost::asio::awaitable<Result<pid_t>> pass_gate(
    boost::asio::io_context& io, UniqueFd gate, std::chrono::milliseconds patience);

}  // namespace cellkeep::session
