// SPDX-License-Identifier: Apache-2.0
//
// The sentences that people read when an interpreter dies, a deadline passes or a session ends.
// They name the limit that was reached and what is left. Pure functions.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/limits/limits.hpp"

#include <chrono>
#include <string>

namespace cellkeep::session {

/// Death::detail of a kCulled session: it was idle, or (this) as old as a session may become.
inline constexpr int kCulledForAge = 1;
/// Death::detail of a kRequested end: a client asked for it, or (this) the server shuts down.
inline constexpr int kServerShutdown = 1;

/// What becomes of the session.
enum class Aftermath {
    kRestarted,  // a fresh interpreter is being started
    kRestored,   // one that goes on from the newest checkpoint
    kLeftDead,   // the session stays, without an interpreter
    kEnded,      // the session is over
};

/// Two sentences: what happened, with the limit's value, and what is left. Also describes a death
/// that a client requested; is_news() says that it needs no notice.
std::string describe(const Death& death, const SessionLimits& limits, Aftermath aftermath);

/// Whether clients get a notice of this death. They get none of an end that a client asked for.
bool is_news(const Death& death);

/// The text under a cell that its deadline interrupts.
std::string describe_wall_deadline(std::chrono::milliseconds limit);
std::string describe_cpu_deadline(std::chrono::milliseconds limit);

/// "30 s", "1.5 s", "2 min", "1 h 30 min": exact for what people configure.
std::string describe_duration(std::chrono::milliseconds duration);

}  // namespace cellkeep::session
