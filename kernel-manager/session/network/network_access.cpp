// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/network/network_access.hpp"

#include <utility>

namespace cellkeep::session {

static_assert(egress::kProxyPort == sandbox::kProxyPort);

Result<egress::NetworkPolicy> grant_network(
    const egress::EgressService* egress_service, const egress::NetworkPolicy& asked) {
    if (asked.mode == egress::NetworkMode::kNone) {
        return egress::NetworkPolicy();
    }
    if (egress_service == nullptr) {
        return Error(
            ErrorCode::kPermissionDenied,
            "network: this server gives sessions no network",
            "Its operator must name hosts with --allow-egress.");
    }
    return egress_service->grant(asked);
}

Result<NetworkAccess> NetworkAccess::prepare(
    std::shared_ptr<egress::EgressService> egress_service,
    std::string session_id,
    egress::NetworkPolicy granted) {
    NetworkAccess access;
    if (granted.mode == egress::NetworkMode::kNone) {
        return access;
    }
    access.egress_service_ = std::move(egress_service);
    access.session_id_ = std::move(session_id);
    access.granted_ = std::move(granted);
    BOOST_OUTCOME_TRY(
        access.bundle_, access.egress_service_->make_bundle(access.session_id_, access.granted_));
    return access;
}

void NetworkAccess::add_to(sandbox::Policy& policy) const {
    if (!bundle_) {
        return;
    }
    policy.network = sandbox::NetworkMode::kProxy;
    policy.read_only.push_back(
        {.source = bundle_->path(),
         .target = egress::kBundleInside,
         .executable = false,
         .optional = false,
         .shared = true});
}

Result<std::shared_ptr<egress::SessionProxy>> NetworkAccess::open(
    sandbox::Sandbox& sandbox, std::vector<std::string>& env) {
    if (!bundle_) {
        return std::shared_ptr<egress::SessionProxy>();
    }
    BOOST_OUTCOME_TRY(
        auto opened, egress_service_->open(session_id_, granted_, sandbox.take_proxy_listener()));
    env.insert(env.end(), opened.environment.begin(), opened.environment.end());
    bundle_.reset();  // the sandbox has it mounted
    return std::move(opened.proxy);
}

Status update_network(
    const egress::EgressService* egress_service,
    egress::SessionProxy* proxy,
    const egress::NetworkPolicy& wanted) {
    if (proxy == nullptr || egress_service == nullptr) {
        if (wanted.mode == egress::NetworkMode::kNone) {
            return ok();
        }
        return Error(
            ErrorCode::kConflict,
            "network: the session was made with mode none and stays without a network",
            "Make another session.");
    }
    if (wanted.mode != proxy->policy().mode || wanted.secrets != proxy->policy().secrets) {
        return Error(
            ErrorCode::kConflict,
            "network: only allow may change while the session lives",
            "An empty list closes the network.");
    }
    BOOST_OUTCOME_TRY(egress_service->check_allow(wanted.allow));
    proxy->set_allow(wanted.allow);
    return ok();
}

}  // namespace cellkeep::session
