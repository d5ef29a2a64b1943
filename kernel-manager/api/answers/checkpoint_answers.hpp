// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints as the session API shows them, and its refusals. Pure.
#pragma once

#include "kernel-manager/checkpoint/checkpoint.hpp"
#include "kernel-manager/http/message/problem.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace cellkeep::api {

nlohmann::json to_json(const checkpoint::Checkpoint& one);
/// The checkpoint, and which ones were evicted for it.
nlohmann::json to_json(const checkpoint::CheckpointMade& made);
/// What a rollback's answer has besides the session's members.
nlohmann::json to_json(const checkpoint::RolledBack& back);
/// All of a session's, and how many there may be.
nlohmann::json to_json(const checkpoint::CheckpointList& list);

/// 409 not-forkable, with the members "reason" and "count".
http::Problem not_forkable(const checkpoint::NotForkable& refused);
/// 410 checkpoint-gone, with the member "reason", for one that was there; 404 unknown-checkpoint.
http::Problem no_checkpoint(const std::string& id, std::optional<checkpoint::Gone> gone);

}  // namespace cellkeep::api
