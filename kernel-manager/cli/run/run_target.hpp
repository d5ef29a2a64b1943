// SPDX-License-Identifier: Apache-2.0
//
// The session that `cellkeep run` runs its cells in: one of this very process, or one on a running
// server. Executions are the session API's JSON either way. Everything on the given io_context's
// thread.
#pragma once

#include "kernel-manager/cli/serve/state_dir.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::cli {

class RunTarget {
 public:
    RunTarget() = default;
    RunTarget(const RunTarget&) = delete;
    RunTarget& operator=(const RunTarget&) = delete;
    virtual ~RunTarget() = default;

    /// Makes the session, with `timeout` as its wall and CPU limit for each execution; its id.
    virtual boost::asio::awaitable<Result<std::string>> open(std::chrono::milliseconds timeout) = 0;
    /// The execution's JSON, with "outputs".
    virtual boost::asio::awaitable<Result<nlohmann::json>> execute(std::string code) = 0;
    /// Interrupts what execute() runs.
    virtual boost::asio::awaitable<void> interrupt() = 0;
    /// Ends the session.
    virtual boost::asio::awaitable<void> close() = 0;
};

struct LocalRun {
    std::string language;
    std::string environment;
    std::vector<std::string> allow_degraded;
    std::vector<std::string> kernels;  // directories; service_setup.hpp
};

/// A service with one session in this process.
Result<std::unique_ptr<RunTarget>> make_local_target(
    boost::asio::io_context& io, const LocalRun& run);

Result<std::unique_ptr<RunTarget>> make_server_target(
    const ServerRecord& server, const std::string& language, const std::string& environment);

}  // namespace cellkeep::cli
