// SPDX-License-Identifier: Apache-2.0
//
// Finds the limit of its session that an execution reached, and describes it. The answer of the
// execution, the log and the text under a Jupyter client's cell name the same reason. These are
// pure functions of what the server measured and of what the interpreter reported. The
// interpreter's report affects only its own execution's answer, so a false report deceives only its
// author.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/execution/execution_recorder.hpp"
#include "kernel-manager/limits/error_facts.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "protocol/message.hpp"
#include "sandbox/sandbox.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

enum class LimitReason {
    kOom,
    kDiskFull,
    kCpuTimeout,
    kWallTimeout,
    kOutputLimit,
    kTooManyProcesses,
    kTooManyOpenFiles,
    kFileTooLarge,
    kForbidden,
};
inline constexpr LimitReason kLastLimitReason = LimitReason::kForbidden;

/// The reason's stable name: error.kind of an execution.
std::string_view to_string(LimitReason reason);
/// The status of an execution that ended with it.
ExecutionStatus status_of(LimitReason reason);

struct LimitHit {
    LimitReason reason = LimitReason::kOom;
    /// One sentence: what happened, with the numbers.
    std::string message;
    /// One sentence: what to do.
    std::string hint;
};

/// What the sandbox counted and refused while the run lasted.
struct RunCounts {
    std::uint64_t oom_kills = 0;
    std::uint64_t process_refusals = 0;
    std::vector<sandbox::Denial> denials;
};

/// The limit that made code fail, if it was one.
std::optional<LimitHit> find_limit(
    const ErrorFacts& error, const RunCounts& counts, const SessionLimits& limits);

/// Whether a limit cut the execution, not a client.
bool is_limit(Cut cut);
/// What an interpreter died of that did not stop when it was cut.
Death::Kind death_after(Cut cut);
/// Whether the code caused the death, not a client or the server.
bool is_own_fault(const Death& death);

/// How the server cut a run short.
struct CutFacts {
    Cut cut = Cut::kNone;
    /// The time that the run had; for kOutputLimit not used.
    std::chrono::milliseconds time{0};
    /// A budget of the session was less than the run's own limit.
    bool from_budget = false;
    /// For kOutputLimit: what the run had said.
    std::uint64_t bytes = 0;
    std::uint64_t messages = 0;
    bool by_messages = false;
};
/// Returns nullopt if nothing cut the execution, or a client interrupted it.
std::optional<LimitHit> find_limit(const CutFacts& cut, const SessionLimits& limits);

/// The limit that an interpreter died of, if it was one.
std::optional<LimitHit> find_limit(
    const Death& death, const RunCounts& counts, const SessionLimits& limits);

/// Writes the limit into an answer: its status, error.kind, the hint and, where the code's own
/// error does not say it, the message.
void apply(const LimitHit& hit, ExecutionResult& result);

}  // namespace cellkeep::session
