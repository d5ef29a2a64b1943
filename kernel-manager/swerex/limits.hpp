// SPDX-License-Identifier: Apache-2.0
//
// The bounds of the SWE-ReX front end. Values.
#pragma once

#include "kernel-manager/process/limits.hpp"

#include <chrono>
#include <cstddef>
#include <string_view>

namespace cellkeep::swerex {

/// Shells of one session: each has a terminal.
inline constexpr std::size_t kShellsMax = process::kTerminalsMax;
/// A shell's prompt is this and random bytes, in hexadecimal digits.
inline constexpr std::string_view kPromptBegin = "REX";
inline constexpr std::size_t kPromptSecretBytes = 12;
/// A shell's name, a path, an encoding; one text that a shell is to wait for, and how many.
inline constexpr std::size_t kNameBytesMax = 128;
inline constexpr std::size_t kPathBytesMax = 4095;
inline constexpr std::size_t kExpectedBytesMax = 1024;
inline constexpr std::size_t kExpectedMax = 32;
/// A command, and what is written to a file.
inline constexpr std::size_t kCommandBytesMax = 1ULL << 20U;
inline constexpr std::size_t kContentBytesMax = 64ULL << 20U;
/// Files that a shell reads when it starts.
inline constexpr std::size_t kSourcesMax = 64;
/// What a shell or a command says in one answer. Of a shell the newest is kept.
inline constexpr std::size_t kOutputBytesMax = 1ULL << 20U;
/// A file that is read.
inline constexpr std::size_t kFileBytesMax = 16ULL << 20U;
/// How long a command may run that names no time, a file may take, and a shell may take to start.
inline constexpr std::chrono::milliseconds kTimeMax{std::chrono::hours(24)};
inline constexpr std::chrono::milliseconds kFileTime{std::chrono::seconds(60)};
inline constexpr std::chrono::milliseconds kStartTime{std::chrono::seconds(30)};
/// What a shell passes to another program besides what it has said, about: names and numbers.
inline constexpr std::size_t kPassedShellBytes = 512;
/// Interrupts of one request.
inline constexpr int kInterruptsMax = 20;

}  // namespace cellkeep::swerex
