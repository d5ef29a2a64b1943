// SPDX-License-Identifier: Apache-2.0
//
// What a front end implements to see a session's output.
#pragma once

#include "kernel-manager/output/journal.hpp"

namespace cellkeep::session {

/// Sees every iopub message of a session, in order.
class OutputObserver {
 public:
    OutputObserver() = default;
    OutputObserver(const OutputObserver&) = delete;
    OutputObserver& operator=(const OutputObserver&) = delete;
    virtual ~OutputObserver() = default;
    virtual void on_output(const OutputEntry& entry) = 0;
    /// True while this observer cannot take more. The session stops reading its kernel until
    /// Session::resume_output(); the observer must bound how long that lasts
    /// (limits::kZmqStallMax).
    virtual bool congested() const { return false; }
};

}  // namespace cellkeep::session
