// SPDX-License-Identifier: Apache-2.0
//
// What may change about a session that lives.
#include "kernel-manager/session/live_session.hpp"
#include "kernel-manager/session/network_access.hpp"

namespace cellkeep::session {

Status LiveSession::update(const SessionUpdate& wanted) {
    if (closed_) {
        return Error(ErrorCode::kConflict, "update: the session has ended");
    }
    if (wanted.limits) {
        BOOST_OUTCOME_TRY(check_lowering(session_limits(), *wanted.limits));
    }
    const auto before = setup_.proxy ? setup_.proxy->policy() : egress::NetworkPolicy();
    if (wanted.network) {
        BOOST_OUTCOME_TRY(
            update_network(setup_.gateway.get(), setup_.proxy.get(), *wanted.network));
    }
    if (wanted.limits) {
        Status lowered = lower_sandbox_limits(
            session_limits(), *wanted.limits, [this](const sandbox::LimitsChange& change) {
                return sandbox_.change_limits(change);
            });
        if (lowered.has_error()) {
            // All or nothing. What was in force a moment ago is allowed.
            (void)update_network(setup_.gateway.get(), setup_.proxy.get(), before).has_value();
            return lowered;
        }
        setup_.options.limits = *wanted.limits;
    }
    if (wanted.metadata) {
        setup_.options.metadata = *wanted.metadata;
    }
    touch();
    watch_life();
    return ok();
}

}  // namespace cellkeep::session
