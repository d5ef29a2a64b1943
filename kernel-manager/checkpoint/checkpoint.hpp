// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint of a session, and what can be asked about one. Values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::checkpoint {

/// What the copied interpreter had and its copy has not. The interpreter counts it: a guest can
/// lie.
struct Lost {
    std::uint32_t threads = 0;          // besides the one that runs cells
    std::uint32_t children = 0;         // processes that it had started
    std::uint32_t sockets = 0;          // their other ends are as they are now, not as they were
    std::uint32_t shared_mappings = 0;  // memory of other processes or files, which is as it is now
    bool operator==(const Lost&) const = default;
};

/// Why an interpreter is not copied now.
struct NotForkable {
    enum class Why {
        kLanguage,  // its kernel has no such thing
        kThreads,   // it has others, which may not or cannot go on in a copy; count: how many
        kThread,    // one could not be stopped; count: its number, name: what it calls itself
        kDebugger,  // one was used in it
        kSystem     // the kernel refused the fork; count: the errno, or 0
    };
    Why why = Why::kSystem;
    std::uint32_t count = 0;
    std::string name{};   // a guest's word: printable ASCII, at most kThreadNameMax characters
    bool carries = true;  // kThreads: this interpreter's could go on in a copy, if they were let
    bool operator==(const NotForkable&) const = default;
};
inline constexpr std::size_t kThreadNameMax = 15;  // PR_SET_NAME(2const)
/// "language", "threads", "thread", "debugger", "system": a name of the wire.
std::string_view to_string(NotForkable::Why why);

/// What becomes of threads besides the one that runs cells.
enum class OnThreads {
    kCarry,   // they go on in each process that goes on from the copy
    kRefuse,  // there is no copy
    kDrop     // the copy has none
};
/// "carry", "refuse", "drop": a name of the wire.
std::string_view to_string(OnThreads on_threads);
std::optional<OnThreads> to_on_threads(std::string_view name);

/// When a session makes checkpoints by itself.
enum class AutoCheckpoints {
    kOff,
    kEach,   // after each cell
    kCostly  // after cells that ran for kCostlyRun
};
inline constexpr std::chrono::milliseconds kCostlyRun{1000};
/// "off", "each", "costly": a name of the wire.
std::string_view to_string(AutoCheckpoints when);

/// Things of the workspace that could not be kept, of which one checkpoint has the names.
inline constexpr std::size_t kUnkeptNamedMax = 16;

/// The files of /workspace that a checkpoint keeps.
struct FilesSummary {
    std::size_t count = 0;    // directories and links too
    std::uint64_t bytes = 0;  // of all; checkpoints share equal contents
    /// False: there were more than can be looked at.
    bool complete = true;
    std::size_t unkept_count = 0;
    struct Unkept {
        std::string path;
        std::string reason;  // a name of the wire
    };
    std::vector<Unkept> unkept;  // the first kUnkeptNamedMax
};

struct Checkpoint {
    std::string id;                        // "ckp_" and 24 hexadecimal digits
    std::optional<std::string> parent;     // that the copied interpreter had come from
    std::optional<std::string> label;      // as asked; those without one are evicted
    std::optional<std::string> execution;  // the newest one of an agent's at that time
    std::int32_t execution_count = 0;      // of the interpreter
    std::chrono::system_clock::time_point created_at;
    /// Made by the session itself; the next such one takes its place.
    bool automatic = false;
    /// That go on in each process that goes on from it.
    std::uint32_t carried_threads = 0;
    Lost lost;
    /// Something ran in the interpreter between requests, so it may change while nothing is begun.
    bool goes_on = false;
    FilesSummary files;
    /// Of its process, shared with no other; nullopt: not measured.
    std::optional<std::uint64_t> private_bytes;
};

struct CheckpointList {
    std::vector<Checkpoint> checkpoints;  // oldest first
    std::uint64_t stored_bytes = 0;       // of contents of files, each once
};

/// What a caller asks for, and gets.
struct CheckpointOrder {
    std::optional<std::string> label;
    OnThreads on_threads = OnThreads::kCarry;
    bool automatic = false;
};
struct CheckpointMade {
    std::optional<NotForkable> refused;  // then there is nothing else here
    Checkpoint checkpoint;
    bool unchanged = false;            // it is an earlier one: nothing has happened since then
    std::vector<std::string> evicted;  // the ids of those that had to go
};

struct RollbackOrder {
    std::string checkpoint;
    bool discard = false;  // the state that is left is not kept
    bool reseed = false;   // random states are made anew
};
struct RolledBack {
    std::optional<NotForkable> refused;  // the state to be left cannot be kept, and nothing is done
    Lost lost;                           // of the checkpoint
    std::optional<std::string> left_as;  // the checkpoint of the state that was left
    std::vector<std::string> evicted;
    /// Of the files of /workspace.
    std::size_t files_written = 0;
    std::size_t files_removed = 0;
    std::size_t files_failed = 0;  // are not as they were
    struct Failure {
        std::string path;
        std::string why;
    };
    std::vector<Failure> failures;  // the first kFailuresNamedMax
};

/// Why there is a checkpoint no more.
enum class Gone { kDeleted, kEvicted, kDied };
/// "deleted", "evicted", "died": a name of the wire.
std::string_view to_string(Gone why);

}  // namespace cellkeep::checkpoint
