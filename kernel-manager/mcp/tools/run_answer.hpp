// SPDX-License-Identifier: Apache-2.0
//
// What run_code and read_output answer: a finished execution, or what one that goes on has said
// since. Bounded whatever the code wrote. Pure, but for the execution that it reads.
#pragma once

#include "kernel-manager/execution/running_execution.hpp"
#include "kernel-manager/mcp/asking/approval_question.hpp"
#include "kernel-manager/mcp/tools/tool_answer.hpp"

#include <cstdint>
#include <string>

namespace cellkeep::mcp {

/// The session that ran it, as the client knows it.
struct RunPlace {
    std::string name;
    std::string session_id;
    /// What the variables had been through before the run.
    State before = State::kKept;
    /// Why they are not kept, in a sentence; "" if they are.
    std::string note;
    bool created = false;
};

/// Why variables are gone that were there at the last call.
inline constexpr const char* kReplacedNote =
    "The interpreter was replaced since the last call. Variables of before are gone; files are "
    "kept.";

/// Precondition: it has finished.
ToolAnswer finished_answer(const RunPlace& place, const session::Execution& execution);
/// What it has said after `cursor`, up to kNewOutputBytesMax; the answer's cursor is where to go
/// on. others: who approves, if it waits for that.
ToolAnswer running_answer(
    const RunPlace& place,
    const session::Execution& execution,
    std::uint64_t cursor,
    OtherApprovers others);

/// The call that the run waits for until a person has said yes or no; null: it waits for none.
const session::ToolCalls::Call* call_for_approval(const session::Execution& execution);

/// Text of both streams after an event.
struct NewOutput {
    std::string stdout_text;
    std::string stderr_text;
    std::uint64_t cursor = 0;  // the last event that is in it
    std::uint64_t missed = 0;  // events that are no longer kept
};
NewOutput read_new_output(const session::EventJournal& events, std::uint64_t cursor);
/// What it has said so far, stdout and then stderr, each with its beginning and end if it is long.
std::string output_text(const session::Execution& execution);
/// Its last line with something in it, at most kProgressLineBytes.
std::string last_line(const NewOutput& output);

}  // namespace cellkeep::mcp
