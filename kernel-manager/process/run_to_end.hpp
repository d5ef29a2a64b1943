// SPDX-License-Identifier: Apache-2.0
//
// A command that runs to its end for a caller that waits for all of it: a small program, such as
// one that lists or copies files inside. io_context thread only.
#pragma once

#include "kernel-manager/process/command.hpp"
#include "kernel-manager/process/command_table.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <string>

namespace cellkeep::process {

struct RunBounds {
    std::chrono::milliseconds time{0};
    std::size_t output_bytes = 0;  // of both streams together
};

/// The field of an error about what a run has said: more than its bound.
inline constexpr const char* kRunOutput = "output";

struct FinishedRun {
    CommandEnd end;
    std::string out;
    std::string err;
    /// The exit code; of one that a signal ended, that number below zero.
    int status() const;
};

/// Gives it the input, if that is not empty, and the end of it. kTimeout, and kLimitExceeded in the
/// field kRunOutput: it has passed the bounds, and is killed. kUnavailable: the session has ended.
/// Else as CommandTable::start() and write_paced(). The table must live as long; the command is
/// forgotten when this returns.
boost::asio::awaitable<Result<FinishedRun>> run_to_end(
    CommandTable& table, CommandOrder order, std::string input, RunBounds bounds);

}  // namespace cellkeep::process
