// SPDX-License-Identifier: Apache-2.0
//
// A session's network, from what was asked for to the proxy in force: what the egress service
// grants becomes a part of the sandbox's policy before the sandbox is made, and a proxy on its
// listener afterwards. Without a network there is nothing here. io_context thread only.
#pragma once

#include "kernel-manager/egress/egress_service.hpp"
#include "kernel-manager/egress/network_policy.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/policy/policy.hpp"
#include "sandbox/sandbox.hpp"

#include <memory>
#include <optional>
#include <string>

namespace cellkeep::session {

/// What of it the server grants; kPermissionDenied without an egress service (null) or above its
/// ceiling.
Result<egress::NetworkPolicy> grant_network(
    const egress::EgressService* egress_service, const egress::NetworkPolicy& asked);

/// Live from before the sandbox is made until its proxy is open.
class NetworkAccess {
 public:
    /// granted: by grant_network().
    static Result<NetworkAccess> prepare(
        std::shared_ptr<egress::EgressService> egress_service,
        std::string session_id,
        egress::NetworkPolicy granted);

    /// Adds the listener and the certificates to a policy.
    void add_to(sandbox::Policy& policy) const;
    /// Opens the proxy on the sandbox's listener, and adds the variables that lead there. Null
    /// without a network.
    Result<std::shared_ptr<egress::SessionProxy>> open(
        sandbox::Sandbox& sandbox, std::vector<std::string>& env);

 private:
    NetworkAccess() = default;

    std::shared_ptr<egress::EgressService> egress_service_;
    std::string session_id_;
    egress::NetworkPolicy granted_;
    std::optional<egress::Bundle> bundle_;
};

/// A live session's new list. kConflict if it has no proxy (null), or if anything but the list
/// would change.
Status update_network(
    const egress::EgressService* egress_service,
    egress::SessionProxy* proxy,
    const egress::NetworkPolicy& wanted);

}  // namespace cellkeep::session
