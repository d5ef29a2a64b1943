// SPDX-License-Identifier: Apache-2.0
//
// The end of a run, told to a client for the first time. io_context thread only.
#pragma once

#include "kernel-manager/mcp/tools/run_answer.hpp"
#include "kernel-manager/mcp/tools/tool.hpp"

namespace cellkeep::mcp {

/// Precondition: it has finished. What has become of the variables is in the answer, and then in
/// the place; the next call is not told it again.
ToolAnswer end_run(
    ToolBench& bench,
    const session::Session& session,
    const session::Execution& execution,
    RunPlace& place);

}  // namespace cellkeep::mcp
