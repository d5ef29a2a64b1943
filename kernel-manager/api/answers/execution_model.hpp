// SPDX-License-Identifier: Apache-2.0
//
// Executions as the session API shows them, in each phase of their life.
#pragma once

#include "kernel-manager/api/answers/model.hpp"
#include "kernel-manager/execution/running_execution.hpp"
#include "protocol/text_pieces.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::api {

enum class Origin { kRun, kCache };

/// What an answer from the cache has in place of the first run's.
struct Annotations {
    std::string reasoning;
    nlohmann::json metadata = nlohmann::json::object();
};

/// The whole answer of a finished one, with its times, as JSON text: what the guest said is spliced
/// in as it came. With kInclude the member "outputs" is the list of nbformat 4 outputs.
protocol::TextPieces finished_text(
    const session::Execution& execution,
    Outputs outputs,
    Origin origin = Origin::kRun,
    const Annotations& annotations = {});
/// A result that no Execution has, without the times.
protocol::TextPieces result_text(const session::ExecutionResult& result, Outputs outputs);
/// What is known of one that waits or runs.
protocol::TextPieces unfinished_text(const session::Execution& execution);
/// Whichever applies.
protocol::TextPieces to_text(const session::Execution& execution, Outputs outputs);
/// One line of a listing.
nlohmann::json summary_json(const session::Execution& execution);

}  // namespace cellkeep::api
