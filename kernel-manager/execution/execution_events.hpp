// SPDX-License-Identifier: Apache-2.0
//
// What a kernel says under one execution, as the events of the session API's streams. Pure, but for
// the journal that it writes to.
#pragma once

#include "kernel-manager/execution/running_execution.hpp"
#include "protocol/message.hpp"

namespace cellkeep::session {

/// Adds what this iopub message means to the execution's events: stdout, stderr, display,
/// update_display, clear_output, result, error. Others, and a guest's malformed ones, add nothing.
void add_output_event(Execution& execution, const protocol::Message& message);

}  // namespace cellkeep::session
