// SPDX-License-Identifier: Apache-2.0
//
// The bounds of one session's commands. Values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cellkeep::process {

/// Commands of one session that run at the same time. What they start themselves counts against the
/// session's own limit of processes only.
inline constexpr std::size_t kCommandsMax = 32;
/// Those of them that have a terminal: the host has 4,096 for all.
inline constexpr std::size_t kTerminalsMax = 8;
/// Rows and columns of a terminal; the name of its kind.
inline constexpr unsigned kTerminalSideMax = 4096;
inline constexpr std::size_t kTerminalKindBytesMax = 64;
/// Reads of what a terminal still holds when its command has ended, 4 KiB each.
inline constexpr int kTerminalDrainsMax = 32;
/// Commands that have ended and are remembered, with their output; the oldest go first.
inline constexpr std::size_t kEndedCommandsMax = 16;
/// Output of one command that is kept for readers, the bookkeeping included; the oldest goes first.
inline constexpr std::size_t kOutputBytesMax = 512ULL << 10U;
/// Of a command whose output waits for a reader: what is kept and not read. Beyond it no more is
/// taken from its pipes. The rest of kOutputBytesMax is for what they hold when it ends.
inline constexpr std::size_t kUnreadBytesMax = kOutputBytesMax / 2;
/// Output in one piece: one event of a stream.
inline constexpr std::size_t kOutputPieceBytesMax = 16ULL << 10U;
/// What all commands of one session may write in one period together. Beyond it they wait in their
/// own writes until the next period: reading for ever would take the event loop from the others.
inline constexpr std::size_t kOutputBytesPerPeriod = 1ULL << 20U;
inline constexpr std::chrono::milliseconds kOutputPeriod{50};
/// Input that a command has not taken yet.
inline constexpr std::size_t kInputBytesMax = 1ULL << 20U;
/// Of that, what all commands of one session together may have waiting when they pass to another
/// program in the server's process.
inline constexpr std::size_t kPassedInputBytesMax = 256ULL << 10U;
/// Of their output that is kept, the bookkeeping included, likewise.
inline constexpr std::size_t kPassedCommandsBytesMax = 4ULL << 20U;
/// What the numbers and names of a command take when it passes, about.
inline constexpr std::size_t kPassedCommandBesidesBytes = 1ULL << 10U;

/// How long a socket's client waits for room for its input, and how much of it is one step.
inline constexpr std::chrono::seconds kInputPatience{30};
inline constexpr std::size_t kInputStepBytes = 64ULL << 10U;

/// Of a request: arguments, and their bytes with their ends; the name of a directory; a label.
inline constexpr std::size_t kArgumentsMax = 256;
inline constexpr std::size_t kArgumentBytesMax = 32ULL << 10U;
inline constexpr std::size_t kDirectoryBytesMax = 4095;
inline constexpr std::size_t kLabelBytesMax = 128;

}  // namespace cellkeep::process
