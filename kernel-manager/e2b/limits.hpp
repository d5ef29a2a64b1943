// SPDX-License-Identifier: Apache-2.0
//
// The bounds of the E2B front end. What a session may consume is its own policy
// (kernel-manager/limits/limits.hpp); what HTTP lets through is in protocol/limits.hpp.
#pragma once

#include "kernel-manager/process/limits.hpp"
#include "protocol/limits.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cellkeep::e2b {

// --- what a client sends
/// Values in one body or one message of a stream, containers included.
inline constexpr std::size_t kBodyValuesMax = 20'000;
/// One message of a stream, without its envelope.
inline constexpr std::size_t kMessageBytesMax = 8ULL << 20U;
/// One message of a stream of input for a command: what a command takes at most, as base64, and
/// what is around it.
inline constexpr std::size_t kInputMessageBytesMax =
    (process::kInputBytesMax / 3 + 1) * 4 + (16ULL << 10U);
/// Metadata of a sandbox: names and values together.
inline constexpr std::size_t kMetadataEntriesMax = 64;
inline constexpr std::size_t kMetadataBytesMax = 16ULL << 10U;
/// The user's name in a signed address.
inline constexpr std::size_t kUserBytesMax = 32;
/// A template's name.
inline constexpr std::size_t kTemplateBytesMax = 256;
/// Idempotency-Key, and how many of them are remembered, of all principals together; the oldest is
/// forgotten for the next.
inline constexpr std::size_t kIdempotencyKeyBytesMax = 255;
inline constexpr std::size_t kIdempotencyKeysMax = 4096;
/// Code of one request.
inline constexpr std::size_t kCodeBytesMax = 8ULL << 20U;
/// Variables of one execution or command, their bytes together.
inline constexpr std::size_t kVariableBytesMax = 64ULL << 10U;

// --- what a client gets
/// Sandboxes on one page, and unless it asks for another number.
inline constexpr std::size_t kPageSandboxesMax = 100;
/// Snapshots of one sandbox that are known: as many as its session keeps checkpoints.
inline constexpr std::size_t kSnapshotsMax = limits::kCheckpointsMax;
/// Forks of one request, as the clients' own API says.
inline constexpr std::int64_t kForksMax = 100;
/// Entries of one listing, all its directories together.
inline constexpr std::size_t kListedEntriesMax = 10'000;
inline constexpr std::uint32_t kListDepthMax = 64;
/// Entries that are read or described before other work has its turn.
inline constexpr std::size_t kSliceEntries = 256;
/// What a program tells of files that only it reaches, and what of its complaint is passed on.
inline constexpr std::size_t kInsideOutputBytesMax = 4ULL << 20U;
inline constexpr std::size_t kInsideErrorBytesMax = 500;
/// The data of one result that are looked into; a larger one says so in its text.
inline constexpr std::size_t kResultBytesMax = 16ULL << 20U;
/// Values in them, containers included: more than tables and figures of Python get
/// (kernels/python/cellkeep_kernel/result_data.py).
inline constexpr std::size_t kResultValuesMax = 600'000;
/// Contexts of one sandbox besides those that every sandbox has.
inline constexpr std::size_t kContextsMax = 64;
inline constexpr std::size_t kContextDirectoryBytesMax = 4095;
/// One answer to GetWatcherEvents reads no further from so many events on, and reads so often; the
/// next one goes on.
inline constexpr std::size_t kWatcherEventsMax = 1000;
inline constexpr int kWatcherReadsMax = 8;

// --- time
/// How long a sandbox lives unless its client says otherwise (the SDKs' default), and at most.
inline constexpr std::chrono::seconds kTimeoutDefault{300};
inline constexpr std::chrono::seconds kTimeoutMax{30LL * 86'400};
/// How often a stream of code's output says that it is alive, and a stream of a command's unless
/// its client asks for another interval.
inline constexpr std::chrono::seconds kExecutionBeat{5};
inline constexpr std::chrono::seconds kCommandBeat{50};
inline constexpr std::chrono::seconds kBeatMin{1};
inline constexpr std::chrono::seconds kBeatMax{300};
/// How often a command's deadline that has passed while its sandbox is paused looks whether that
/// goes on.
inline constexpr std::chrono::seconds kPausedLook{5};
/// How long a program may take that lists or copies files inside.
inline constexpr std::chrono::seconds kInsidePatience{60};
/// How long a stream of input for a command may be silent; it may be open for as long as it likes.
inline constexpr std::chrono::seconds kInputSilenceMax{300};
/// The longest that a command may be asked to run.
inline constexpr std::chrono::milliseconds kCommandTimeMax{30LL * 86'400 * 1000};

}  // namespace cellkeep::e2b
