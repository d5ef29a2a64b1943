// SPDX-License-Identifier: Apache-2.0
//
// Input of any length for a command, at the pace at which it reads. io_context thread only.
#pragma once

#include "kernel-manager/process/command_table.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>

namespace cellkeep::process {

/// As CommandTable::write(), step by step: where there is no room it waits until there is, at most
/// kInputPatience at a time; then it is kLimitExceeded. The table's session must be held.
boost::asio::awaitable<Status> write_paced(
    CommandTable& table, std::shared_ptr<Command> command, std::string text, bool last);

}  // namespace cellkeep::process
