// SPDX-License-Identifier: Apache-2.0
//
// Which limit of its session a run ran into, by name, and what to say about it: one reason for the
// answer of an execution, the log and the text under a Jupyter client's cell. Pure functions of
// what the server measured and what the interpreter said of its error. What the interpreter says
// decides about its own answer only: code that lies about itself is told about itself.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/execution/execution_recorder.hpp"
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

/// How an interpreter says that code failed: an execute_reply's content and metadata.
struct ErrorFacts {
    std::string name;
    std::string message;        // bounded; with terminal colours, if it has any
    std::string kind;           // "memory" …, as the interpreter classed it
    std::optional<int> number;  // errno of the error, or of the one that it was raised from
    std::string full;           // "/tmp" of a file system that is full
    bool inodes = false;        // of files, not of bytes
};
/// Nothing if the reply says that the code succeeded, or makes no sense.
std::optional<ErrorFacts> read_error(const protocol::Message& reply);

/// What the sandbox counted and refused while the run lasted.
struct RunCounts {
    std::uint64_t oom_kills = 0;
    std::uint64_t process_refusals = 0;
    std::vector<sandbox::Denial> denials;
};

/// The limit that made code fail, if it was one.
std::optional<LimitHit> find_limit(
    const ErrorFacts& error, const RunCounts& counts, const SessionLimits& limits);

/// A limit's: not nothing, and not what somebody asked for.
bool is_limit(Cut cut);
/// What an interpreter died of that did not stop when it was cut.
Death::Kind death_after(Cut cut);
/// Whether a death is the code's doing and not somebody's or the server's.
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
/// Nothing for an interrupt that somebody asked for, and for no cut.
std::optional<LimitHit> find_limit(const CutFacts& cut, const SessionLimits& limits);

/// The limit that an interpreter died of, if it was one.
std::optional<LimitHit> find_limit(
    const Death& death, const RunCounts& counts, const SessionLimits& limits);

/// Writes the limit into an answer: its status, error.kind, the hint and, where the code's own
/// error does not say it, the message.
void apply(const LimitHit& hit, ExecutionResult& result);

}  // namespace cellkeep::session
