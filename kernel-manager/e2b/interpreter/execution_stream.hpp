// SPDX-License-Identifier: Apache-2.0
//
// One run of code as the answer of E2B's POST /execute: a line of JSON for each thing that it says.
// If the client goes first, the run is interrupted. io_context thread only.
#pragma once

#include "kernel-manager/execution/running_execution.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/work_thread.hpp"

#include <memory>

namespace cellkeep::e2b {

/// work_thread: there as long as the server; makes the lines of large results. Null: they are made
/// at once.
http::Response execution_answer(
    std::shared_ptr<session::Session> session,
    std::shared_ptr<session::Execution> execution,
    WorkThread* work_thread);

}  // namespace cellkeep::e2b
