// SPDX-License-Identifier: Apache-2.0
//
// What people are told when an interpreter dies, a deadline strikes or a session ends: sentences
// with the limit that was reached and what is left. Pure functions.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/limits/limits.hpp"

#include <chrono>
#include <string>

namespace cellkeep::session {

/// Death::detail of a kCulled session: it was idle, or (this) as old as a session may become.
inline constexpr int kCulledForAge = 1;
/// Death::detail of a kRequested end: somebody asked for it, or (this) the server shuts down.
inline constexpr int kServerShutdown = 1;

/// What becomes of the session.
enum class Aftermath {
    kRestarted,  // a fresh interpreter is being started
    kLeftDead,   // the session stays, without an interpreter
    kEnded,      // the session is over
};

/// Two sentences: what happened, with the limit's value, and what is left. For a requested death
/// too, though whoever asked need not be told.
std::string describe(const Death& death, const SessionLimits& limits, Aftermath aftermath);

/// Whether people are told without having asked: not of an end that somebody asked for.
bool is_news(const Death& death);

/// What a cell's owner is told when its deadline interrupts it.
std::string describe_wall_deadline(std::chrono::milliseconds limit);
std::string describe_cpu_deadline(std::chrono::milliseconds limit);

/// "30 s", "1.5 s", "2 min", "1 h 30 min": exact for what people configure.
std::string describe_duration(std::chrono::milliseconds duration);

}  // namespace cellkeep::session
