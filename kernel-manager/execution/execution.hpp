// SPDX-License-Identifier: Apache-2.0
//
// One execution asked for by a front end that wants one whole answer: the request and the result,
// as values. Wire names and meaning: the session API, "Executions".
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/notebook_output.hpp"
#include "kernel-manager/execution/tool_calls.hpp"
#include "protocol/raw_json.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

/// A file to put into the workspace before code runs: its bytes, or where the operator's read-only
/// inputs directory has it.
struct InputFile {
    std::string path;  // relative to the workspace
    std::string bytes;
    std::string from;    // relative to the inputs directory; empty: by its bytes
    std::string sha256;  // lower-case hexadecimal; what `from` must have. Empty: not checked
};

struct ExecutionRequest {
    std::string code;
    std::string stdin_text;                            // answers input(), line by line, then EOF
    std::optional<std::chrono::milliseconds> timeout;  // wall; at most the session's limit
    std::vector<InputFile> files;
    std::string reasoning;  // why the caller runs it: kept with the result
    nlohmann::json metadata = nlohmann::json::object();  // kept with the result
    std::string idempotency_key;                         // empty: none
    bool store_history = true;
    std::string language;  // empty: the session's own
    std::vector<LentTool> tools;
    /// Its callers find its answer in another program, too: it may pass while its code runs.
    bool passes = false;
};

/// Exactly one per execution.
enum class ExecutionStatus {
    kOk,
    kError,        // the code raised
    kTimeout,      // wall or cpu: error.kind says which
    kInterrupted,  // by request
    kOom,
    kDiskFull,
    kOutputLimit,
    kDenied,
    kDead,  // the kernel died: error says why
};

std::string_view to_string(ExecutionStatus status);

struct ExecutionError {
    std::string kind;  // "syntax", "runtime", "import", "wall_timeout", "cpu_timeout", "oom",
                       // "disk_full", "files", "dead", …
    std::string name;  // the exception's class
    std::string message;
    std::optional<int> line;             // 1-based, in the submitted code
    std::optional<int> column;           // 1-based
    std::vector<std::string> traceback;  // plain text, no terminal colours
    std::string hint;                    // one sentence an agent can act on
};

struct Truncation {
    std::uint64_t kept = 0;   // bytes in the answer
    std::uint64_t total = 0;  // bytes written
    std::string saved_to;     // file in the workspace with the whole text; empty if it did not fit
    std::string not_saved;    // why there is none: "workspace_full", "too_long"
};

/// A file that an execution made or changed.
struct Artifact {
    enum class Change { kCreated, kModified };
    std::string path;  // relative to the workspace; any bytes that the guest liked but NUL
    Change change = Change::kCreated;
    std::uint64_t bytes = 0;
    /// Lower-case hexadecimal; empty beyond the session's artifact_bytes, and for a file that
    /// changed while it was read.
    std::string sha256;
    std::string media_type;  // by its name (RFC 9110, section 8.3.1)
};

std::string_view to_string(Artifact::Change change);

struct ExecutionMetrics {
    std::chrono::microseconds wall{0};
    std::chrono::microseconds cpu{0};
    /// Of everything in the session together, its files in memory included.
    std::uint64_t memory_peak_bytes = 0;
    /// True: the highest while this execution ran. False: since the session began, because the
    /// kernel cannot begin anew.
    bool memory_peak_is_own = false;
    std::chrono::microseconds queued{0};
};

/// What a new interpreter goes on from.
struct RestoredState {
    std::string checkpoint;
    /// The executions since then, in their order, this one too; at most kUndoneNamedMax.
    std::vector<std::string> undone;
};
inline constexpr std::size_t kUndoneNamedMax = 100;

struct ExecutionResult {
    std::string id;  // "exe_…"
    std::string session_id;
    ExecutionStatus status = ExecutionStatus::kOk;
    std::optional<std::int64_t> execution_count;
    std::string stdout_text;
    std::string stderr_text;
    protocol::RawJson result;  // MIME bundle of the last expression, or null
    /// What was shown, in order.
    std::vector<NotebookOutput> outputs;
    std::optional<ExecutionError> error;
    std::optional<Death> death;    // of the kernel, if it died under this execution
    std::optional<int> exit_code;  // the code's own, or 0 ok, 1 raised; nothing: it did not end
    bool state_kept = true;        // false: the interpreter was replaced, its variables are gone
    /// The new interpreter goes on from a checkpoint; only with !state_kept.
    std::optional<RestoredState> restored;
    std::map<std::string, Truncation> truncated;  // by stream name
    ExecutionMetrics metrics;
    std::vector<Artifact> artifacts;  // by path
    /// False: more may have been made or changed than `artifacts` says (limits::kArtifactsMax, or
    /// too much happened at once to see it all).
    bool artifacts_complete = true;
    std::string reasoning;  // as the request had them
    nlohmann::json metadata = nlohmann::json::object();
    std::uint64_t retained_bytes = 0;  // about what keeping this result costs
};

/// The new interpreter goes on from a checkpoint; the error's hint says so.
void set_restored(ExecutionResult& result, RestoredState restored);

}  // namespace cellkeep::session
