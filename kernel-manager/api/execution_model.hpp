// SPDX-License-Identifier: Apache-2.0
//
// Executions as the session API shows them, in each phase of their life.
#pragma once

#include "kernel-manager/api/model.hpp"
#include "kernel-manager/execution/running_execution.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::agent {

enum class Origin { kRun, kCache };

/// The whole answer of a finished one, with its times.
nlohmann::json finished_json(
    const session::Execution& execution, Outputs outputs, Origin origin = Origin::kRun);
/// What is known of one that waits or runs.
nlohmann::json unfinished_json(const session::Execution& execution);
/// Whichever applies.
nlohmann::json to_json(const session::Execution& execution, Outputs outputs);
/// One line of a listing.
nlohmann::json summary_json(const session::Execution& execution);

}  // namespace cellkeep::agent
