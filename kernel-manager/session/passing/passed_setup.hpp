// SPDX-License-Identifier: Apache-2.0
//
// How a passed session was made, as far as it was written down: the rest is its new service's.
#pragma once

#include "kernel-manager/session/passing/passed_sessions.hpp"
#include "kernel-manager/session/session_setup.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/server/zygote.hpp"

#include <memory>

namespace cellkeep::session {

/// What several passed sessions share, made again: zygotes, leases and catalogs are taken out.
/// kProtocol: a catalog is not of the form.
Result<SharedAgain> share_again(PassedSessions& passed);
/// kProtocol: not of the form.
Result<SessionSetup> read_setup(const PassedSession& passed, const SharedAgain& shared);
/// Its sandbox is taken out. zygote: which made it; null if none did. What is inside a paused one
/// stands still, and the object knows it.
sandbox::Sandbox take_sandbox(
    PassedSession& passed, std::shared_ptr<sandbox::Zygote> zygote = nullptr);
/// A program of an older format leaves none that is.
bool is_paused(const PassedSession& passed);
/// Nobody takes them: ends all that is inside.
void end_passed(PassedSessions passed);

}  // namespace cellkeep::session
