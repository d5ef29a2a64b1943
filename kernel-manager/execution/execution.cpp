// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/execution.hpp"

namespace cellkeep::session {

std::string_view to_string(ExecutionStatus status) {
    switch (status) {
        case ExecutionStatus::kOk:
            return "ok";
        case ExecutionStatus::kError:
            return "error";
        case ExecutionStatus::kTimeout:
            return "timeout";
        case ExecutionStatus::kInterrupted:
            return "interrupted";
        case ExecutionStatus::kOom:
            return "oom";
        case ExecutionStatus::kDiskFull:
            return "disk_full";
        case ExecutionStatus::kOutputLimit:
            return "output_limit";
        case ExecutionStatus::kDenied:
            return "denied";
        case ExecutionStatus::kDead:
            return "dead";
    }
    return "unknown";
}

std::string_view to_string(Artifact::Change change) {
    return change == Artifact::Change::kCreated ? "created" : "modified";
}

void set_restored(ExecutionResult& result, RestoredState restored) {
    if (result.error) {
        result.error->hint = "The interpreter goes on from checkpoint " + restored.checkpoint +
                             ": what has run since then is undone, files are kept.";
    }
    result.restored = std::move(restored);
}

}  // namespace cellkeep::session
