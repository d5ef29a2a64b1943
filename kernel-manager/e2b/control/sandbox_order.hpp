// SPDX-License-Identifier: Apache-2.0
//
// What E2B's clients ask for when they create a sandbox, as a session and a record. Pure.
#pragma once

#include "kernel-manager/e2b/control/sandbox_book.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::e2b {

/// What this server has for them.
struct Offer {
    std::vector<std::string> languages;
    session::LimitCeilings ceilings;
    /// What the operator lets sessions reach at most: what E2B calls internet access.
    std::vector<egress::AllowedHost> reachable;
    /// Python's sandboxes are made so that there can be snapshots and forks of them.
    bool snapshots = false;
};

struct SandboxOrder {
    session::SessionOptions options;  // without an owner; no language: of no template
    bool names_variables = false;     // of its own
    SandboxRecord record;             // without ends_at
    std::chrono::seconds timeout{0};
    std::string digest;  // of the body: equal for equal wishes, however they are spelled
};

/// The language of a template: its own for one that is called as a language, "python" for E2B's
/// base and code interpreter, the kernel of a named environment for one that is called as that.
/// Without a value: there is no such template. A tag behind a colon is left out.
std::optional<std::string> language_of_template(
    std::string_view name, const std::vector<std::string>& languages);
/// The names that language_of_template() knows, for people.
std::string template_names(const std::vector<std::string>& languages);

/// kNotFound, with the templates that there are.
Error no_template(const std::string& name, const std::vector<std::string>& languages);

/// kInvalidArgument; kUnavailable: something that this server does not offer, with what to do
/// instead. A template that is none of this server's may be a snapshot.
Result<SandboxOrder> parse_sandbox_order(const nlohmann::json& body, const Offer& offer);
/// What a body says of the network: nothing is said, or which of the reachable. As above.
Result<egress::NetworkPolicy> parse_network(const nlohmann::json& body, const Offer& offer);
/// The same of the body of PUT /sandboxes/{id}/network, which is the network itself.
Result<egress::NetworkPolicy> parse_network_body(const nlohmann::json& body, const Offer& offer);
/// The body of a pause: whether the memory is kept, which is what a client means that says nothing.
/// kInvalidArgument.
Result<bool> parse_pause(const nlohmann::json& body);
/// The member "timeout" in seconds. kInvalidArgument beyond the server's ceiling.
Result<std::optional<std::chrono::seconds>> parse_timeout(
    const nlohmann::json& body, const session::LimitCeilings& ceilings);

}  // namespace cellkeep::e2b
