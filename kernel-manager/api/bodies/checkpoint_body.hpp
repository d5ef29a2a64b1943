// SPDX-License-Identifier: Apache-2.0
//
// The bodies of the checkpoint routes. Pure.
#pragma once

#include "kernel-manager/api/bodies/object_reader.hpp"
#include "kernel-manager/checkpoint/checkpoint.hpp"

#include <nlohmann/json.hpp>

namespace cellkeep::api {

// Each fills errors; the value counts only if there are none.
checkpoint::CheckpointOrder parse_checkpoint_order(const nlohmann::json& body, FieldErrors& errors);
checkpoint::RollbackOrder parse_rollback_order(const nlohmann::json& body, FieldErrors& errors);
/// The field "checkpoints" of a new session.
struct CheckpointChoices {
    checkpoint::AutoCheckpoints automatic = checkpoint::AutoCheckpoints::kOff;
    bool branches = false;
};
CheckpointChoices read_checkpoint_choices(ObjectReader& session, FieldErrors& errors);

}  // namespace cellkeep::api
