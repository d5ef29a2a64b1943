// SPDX-License-Identifier: Apache-2.0
//
// What may change about a session that lives.
#include "kernel-manager/session/live_session.hpp"
#include "kernel-manager/session/network_access.hpp"

namespace cellkeep::session {

Status LiveSession::update(const SessionUpdate& wanted) {
    if (shared_.closed) {
        return Error(ErrorCode::kConflict, "update: the session has ended");
    }
    if (wanted.limits) {
        BOOST_OUTCOME_TRY(check_lowering(shared_.limits(), *wanted.limits));
    }
    const auto before =
        shared_.setup.proxy ? shared_.setup.proxy->policy() : egress::NetworkPolicy();
    if (wanted.network) {
        BOOST_OUTCOME_TRY(update_network(
            shared_.setup.gateway.get(), shared_.setup.proxy.get(), *wanted.network));
    }
    if (wanted.limits) {
        Status lowered = lower_sandbox_limits(
            shared_.limits(), *wanted.limits, [this](const sandbox::LimitsChange& change) {
                return shared_.sandbox.change_limits(change);
            });
        if (lowered.has_error()) {
            // All or nothing. What was in force a moment ago is allowed.
            (void)update_network(shared_.setup.gateway.get(), shared_.setup.proxy.get(), before)
                .has_value();
            return lowered;
        }
        shared_.setup.options.limits = *wanted.limits;
    }
    if (wanted.metadata) {
        shared_.setup.options.metadata = *wanted.metadata;
    }
    touch();
    watch_life();
    return ok();
}

}  // namespace cellkeep::session
