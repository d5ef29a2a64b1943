// SPDX-License-Identifier: Apache-2.0
//
// `network` of the session API: what a body asks for as values of kernel-manager/egress, and a
// session's network as JSON. Never: a secret's value, which no value here holds.
#pragma once

#include "kernel-manager/api/bodies/object_reader.hpp"
#include "kernel-manager/egress/network_policy.hpp"

#include <nlohmann/json.hpp>

#include <optional>

namespace cellkeep::api {

/// {"mode": "none"} or {"mode": "allowlist", "allow": ["HOST[:PORT]", …], "secrets": ["NAME", …]};
/// missing: none. Bounds: limits::kEgressAllowedHostsMax, kEgressSecretsMax.
egress::NetworkPolicy read_network(ObjectReader& parent, FieldErrors& errors);

/// As read_network, for a session that has `now`: what is not said stays. Nothing if `network` is
/// missing.
std::optional<egress::NetworkPolicy> read_network_update(
    ObjectReader& parent, const egress::NetworkPolicy& now, FieldErrors& errors);

nlohmann::json network_to_json(const egress::NetworkPolicy& policy, const egress::Traffic& traffic);

}  // namespace cellkeep::api
