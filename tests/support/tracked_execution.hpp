// SPDX-License-Identifier: Apache-2.0
//
// An execution of the session API for tests of what queues, runs and answers it.
#pragma once

#include "kernel-manager/kernel/request_queue.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>
#include <optional>

namespace cellkeep::test {

/// "exe_1" of session "s", in Python, without files and without a timeout of its own.
inline std::shared_ptr<session::TrackedExecution> make_tracked_execution(
    boost::asio::io_context& io) {
    return std::make_shared<session::TrackedExecution>(session::TrackedExecution{
        std::make_shared<session::Execution>(
            io,
            session::Execution::Order{
                .id = "exe_1",
                .session_id = "s",
                .language = "python",
                .code_sha256 = {},
                .reasoning = {}}),
        session::ExecutionRecorder("exe_1", "s", "", 1000),
        std::nullopt,
        {}});
}

}  // namespace cellkeep::test
