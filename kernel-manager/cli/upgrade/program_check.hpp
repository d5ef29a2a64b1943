// SPDX-License-Identifier: Apache-2.0
//
// Whether the program at a path can take this server's place: asked before anything is given up.
// The file must be the server's own kind of file, and the program itself says what it understands.
// It is run as the server was, with kTakeOverCheckFlag behind its words, so that it also reads the
// configuration as it would. Blocks: not for the event loop.
#pragma once

#include "kernel-manager/cli/upgrade/command_line.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace cellkeep::cli {

inline constexpr std::chrono::seconds kTakeOverCheckPatience{10};
/// Of what the check writes.
inline constexpr std::uint64_t kTakeOverCheckBytesMax = 1U << 20U;

/// What a program that can take over says, on one line.
std::string take_over_answer();
struct TakeOverAnswer {
    std::string version;
    int format = 0;  // the newest that both programs know
};
/// Of the program whose last line this is. kProtocol: it is no such answer; kUnavailable: it reads
/// other formats.
Result<TakeOverAnswer> read_take_over_answer(std::string_view said);

/// kPermissionDenied: not a file that this user may execute, or one that others may write.
Status check_program_file(const std::string& path);

/// As above, and kTimeout, kLimitExceeded, or what the program said of its failure.
/// folder: for what it writes; made if it is missing, and removed.
Result<TakeOverAnswer> check_program(
    const CommandLine& line,
    const std::string& folder,
    std::chrono::milliseconds patience = kTakeOverCheckPatience);

}  // namespace cellkeep::cli
