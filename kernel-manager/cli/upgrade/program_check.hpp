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
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::cli {

inline constexpr std::chrono::seconds kTakeOverCheckPatience{10};
/// Of what the check writes.
inline constexpr std::uint64_t kTakeOverCheckBytesMax = 1U << 20U;

/// In the environment of the program that is asked: the addresses that will be passed to it, with a
/// space between two.
inline constexpr const char* kPassedAddressesVariable = "CELLKEEP_PASSED_ADDRESSES";

/// What a program that can take over says, on one line.
std::string take_over_answer();
struct TakeOverAnswer {
    std::string version;
    int format = 0;  // the newest that both programs know
};
/// Of the program whose last line this is. kProtocol: it is no such answer; kUnavailable: it reads
/// other formats.
Result<TakeOverAnswer> read_take_over_answer(std::string_view said);

struct ProgramCheck {
    CommandLine line;
    std::string folder;                  // for what it writes; made if it is missing, and removed
    std::vector<std::string> addresses;  // that will be passed to it, as to_text() has them
    std::stop_token stop = {};           // then it ends at once, with kCancelled
    std::chrono::milliseconds patience = kTakeOverCheckPatience;
};

/// kPermissionDenied: not a file that this user may execute, or one that others may write.
Status check_program_file(const std::string& path);

/// As above, and kTimeout, kLimitExceeded, kCancelled, or what the program said of its failure.
Result<TakeOverAnswer> check_program(const ProgramCheck& check);

/// What was asked: nothing if this process's environment has no such variable.
std::optional<std::vector<std::string>> read_passed_addresses();

}  // namespace cellkeep::cli
