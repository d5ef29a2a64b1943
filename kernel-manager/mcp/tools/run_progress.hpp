// SPDX-License-Identifier: Apache-2.0
//
// Tells a client that wants it what a run does, every kProgressInterval as long as this lives: for
// how long it has been running, its last line of output, and whether it waits for a person.
// io_context thread only.
#pragma once

#include "kernel-manager/execution/running_execution.hpp"
#include "kernel-manager/mcp/call.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

namespace cellkeep::mcp {

class RunProgress : public std::enable_shared_from_this<RunProgress> {
 public:
    static std::shared_ptr<RunProgress> begin(
        const boost::asio::any_io_executor& executor,
        std::shared_ptr<const Call> call,
        std::shared_ptr<const session::Execution> execution);
    RunProgress(const RunProgress&) = delete;
    RunProgress& operator=(const RunProgress&) = delete;
    ~RunProgress() = default;

 private:
    RunProgress(
        const boost::asio::any_io_executor& executor,
        std::shared_ptr<const Call> call,
        std::shared_ptr<const session::Execution> execution)
        : call_(std::move(call)), execution_(std::move(execution)), timer_(executor) {}
    void wait();
    void report();

    const std::shared_ptr<const Call> call_;
    const std::shared_ptr<const session::Execution> execution_;
    const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    std::uint64_t seen_ = 0;  // the last event that a report has told of
    boost::asio::steady_timer timer_;
};

}  // namespace cellkeep::mcp
