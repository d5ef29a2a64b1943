// SPDX-License-Identifier: Apache-2.0
//
// What may change about a session that lives.
#include "kernel-manager/session/live_session.hpp"

namespace cellkeep::session {

Status LiveSession::update(const SessionUpdate& wanted) {
    if (closed_) {
        return Error(ErrorCode::kConflict, "update: the session has ended");
    }
    if (wanted.limits) {
        BOOST_OUTCOME_TRY(check_lowering(setup_.options.limits, *wanted.limits));
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
