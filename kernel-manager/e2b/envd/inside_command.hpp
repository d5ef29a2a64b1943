// SPDX-License-Identifier: Apache-2.0
//
// A small program that runs in a sandbox to its end, for files that only what is inside can reach.
// It is a command like every other: under the sandbox's rules, and counted. io_context thread only.
#pragma once

#include "kernel-manager/e2b/wire/rpc.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <string>
#include <vector>

namespace cellkeep::e2b {

inline constexpr int kNoExitCode = 128;

struct InsideRun {
    int status = 0;  // its exit code, or kNoExitCode
    std::string out;
    std::string err;
};

/// argv: a program and its arguments. kLimitExceeded: it writes more than kInsideOutputBytesMax;
/// kTimeout: it takes longer than kInsidePatience. It is killed then. Else as
/// process::CommandTable::start().
boost::asio::awaitable<Result<InsideRun>> run_inside(
    RpcSession session, std::vector<std::string> argv);

}  // namespace cellkeep::e2b
