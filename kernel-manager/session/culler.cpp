// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/culler.hpp"

#include <algorithm>

namespace cellkeep::session {

namespace {

using Time = CullSituation::Time;

/// When the session will have been idle for too long, if nothing happens; nothing while something
/// keeps it.
std::optional<Time> find_idle_end(const CullSituation& situation) {
    if (situation.idle.count() == 0) {
        return std::nullopt;
    }
    const bool kept = (situation.busy && !situation.cull_busy) ||
                      (situation.connected && !situation.cull_connected);
    if (kept && !situation.dead) {
        return std::nullopt;
    }
    Time end = situation.last_activity + situation.idle;
    if (situation.client_left_at.has_value()) {
        end = std::max(end, *situation.client_left_at + std::min(kReturnGrace, situation.idle));
    }
    return end;
}

}  // namespace

CullDecision decide_cull(const CullSituation& situation, Time now) {
    using Verdict = CullDecision::Verdict;
    std::optional<Time> life_end;
    if (situation.lifetime.count() > 0) {
        life_end = situation.created_at + situation.lifetime;
    }
    if (life_end.has_value() && now >= *life_end) {
        return {Verdict::kOld, {}};
    }
    const std::optional<Time> idle_end = find_idle_end(situation);
    if (idle_end.has_value() && now >= *idle_end) {
        return {Verdict::kIdle, {}};
    }
    if (life_end.has_value() && idle_end.has_value()) {
        return {Verdict::kStay, std::min(*life_end, *idle_end)};
    }
    return {Verdict::kStay, life_end.has_value() ? life_end : idle_end};
}

}  // namespace cellkeep::session
