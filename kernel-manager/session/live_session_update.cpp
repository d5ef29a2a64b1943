// SPDX-License-Identifier: Apache-2.0
//
// What may change about a session that lives.
#include "kernel-manager/session/live_session.hpp"
#include "kernel-manager/session/network_access.hpp"

namespace cellkeep::session {

namespace {

/// One limit after the other, the one that may be refused first.
Status lower_sandbox_limits(
    const SessionLimits& now, const SessionLimits& wanted, sandbox::Sandbox& sandbox) {
    const auto lower = [&sandbox](const char* name, const sandbox::LimitsChange& change) {
        const Status changed = sandbox.change_limits(change);
        return changed.has_value()
                   ? Status(ok())
                   : Status(Error(
                         ErrorCode::kInvalidArgument,
                         "limits/" + std::string(name) +
                             ": cannot be lowered now: " + changed.error().message()));
    };
    if (wanted.memory_mb != now.memory_mb) {
        sandbox::LimitsChange change;
        change.memory_bytes = wanted.memory_mb << 20U;
        BOOST_OUTCOME_TRY(lower("memory_mb", change));
    }
    if (wanted.processes != now.processes) {
        sandbox::LimitsChange change;
        change.processes = wanted.processes;
        BOOST_OUTCOME_TRY(lower("processes", change));
    }
    if (wanted.cpu_cores < now.cpu_cores) {
        sandbox::LimitsChange change;
        change.cpu_cores = wanted.cpu_cores;
        BOOST_OUTCOME_TRY(lower("cpu_cores", change));
    }
    return ok();
}

}  // namespace

Status LiveSession::update(const SessionUpdate& wanted) {
    if (closed_) {
        return Error(ErrorCode::kConflict, "update: the session has ended");
    }
    if (wanted.limits) {
        BOOST_OUTCOME_TRY(check_lowering(setup_.options.limits, *wanted.limits));
    }
    const auto before = setup_.proxy ? setup_.proxy->policy() : egress::NetworkPolicy();
    if (wanted.network) {
        BOOST_OUTCOME_TRY(
            update_network(setup_.gateway.get(), setup_.proxy.get(), *wanted.network));
    }
    if (wanted.limits) {
        Status lowered = lower_sandbox_limits(setup_.options.limits, *wanted.limits, sandbox_);
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
