// SPDX-License-Identifier: Apache-2.0
//
// How a passed session was made, as far as it was written down: the rest is its new service's.
#pragma once

#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "protocol/support/result.hpp"

namespace cellkeep::session {

/// What several passed sessions share, made again: zygotes, leases and catalogs are taken out.
/// kProtocol: a catalog is not of the form.
Result<SharedAgain> share_again(PassedSessions& passed);
/// kProtocol: not of the form.
Result<SessionSetup> read_setup(const PassedSession& passed, const SharedAgain& shared);
/// Nobody takes them: ends all that is inside.
void end_passed(PassedSessions passed);

}  // namespace cellkeep::session
