// SPDX-License-Identifier: Apache-2.0
//
// Whether an unused session ends now, and when to ask again: a pure function of what the
// session is and what time it is. Never acts; never reads a clock.
#pragma once

#include <chrono>
#include <optional>

namespace cellkeep::session {

/// A client that left is expected back for this long (a page that is reloaded, a lost network),
/// also when the session has been idle for longer; at most the session's idle limit.
inline constexpr std::chrono::seconds kReturnGrace{60};

struct CullSituation {
    using Time = std::chrono::steady_clock::time_point;

    Time created_at;
    Time last_activity;
    std::optional<Time> client_left_at;  // the last one, while none is connected
    std::chrono::seconds idle{0};        // 0: an idle session is never ended
    std::chrono::seconds lifetime{0};    // 0: an old session is never ended
    bool cull_connected = false;         // idle sessions with clients end too
    bool cull_busy = false;              // … also while a request runs
    bool connected = false;
    bool busy = false;
    bool dead = false;  // its interpreter is dead for good: clients no longer keep it
};

struct CullDecision {
    enum class Verdict { kStay, kIdle, kOld };
    Verdict verdict = Verdict::kStay;
    /// When it stays: ask again then, or, without a value, when something in the situation but the
    /// time has changed.
    std::optional<CullSituation::Time> ask_again;
};

CullDecision decide_cull(const CullSituation& situation, CullSituation::Time now);

}  // namespace cellkeep::session
