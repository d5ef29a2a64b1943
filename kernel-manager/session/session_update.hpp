// SPDX-License-Identifier: Apache-2.0
//
// What may change about a session that lives: its limits (only down), what it may reach, what is
// noted about it. Values and pure checks; Session::update applies them, all or nothing.
#pragma once

#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/policy/limits_change.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>

namespace cellkeep::session {

struct SessionUpdate {
    /// The whole of what is in force afterwards.
    std::optional<SessionLimits> limits;
    std::optional<egress::NetworkPolicy> network;
    std::optional<nlohmann::json> metadata;
    /// Counts as activity. Any other update does too.
    bool keep_alive = false;
};

/// kInvalidArgument, "limits/NAME: …", for the first limit that would go up, that cannot change in
/// a session that lives (disk_mb), or that is below its least.
Status check_lowering(const SessionLimits& now, const SessionLimits& wanted);

/// Makes the sandbox's limits what is wanted, through `change`, one limit after the other: all of
/// them, or none: what was changed before a failure is put back. kInvalidArgument, "limits/NAME:
/// …".
Status lower_sandbox_limits(
    const SessionLimits& now,
    const SessionLimits& wanted,
    const std::function<Status(const sandbox::LimitsChange&)>& change);

/// The document with a merge patch applied (RFC 7396).
nlohmann::json merge_patch(nlohmann::json document, const nlohmann::json& patch);

}  // namespace cellkeep::session
