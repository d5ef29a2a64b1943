// SPDX-License-Identifier: Apache-2.0
//
// Runs a program to its end, to the bounds of its time and of the disk space that it takes, or
// until its caller stops it. Blocks: not for the event loop.
#pragma once

#include "protocol/support/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace cellkeep::environments {

/// Bytes of the end of a program's output that an error shows.
inline constexpr std::size_t kSaidBytesMax = 4096;

struct BoundedCommand {
    std::vector<std::string> argv;         // argv[0] is a path
    std::vector<std::string> environment;  // "NAME=value"; the whole of it
    std::string directory;                 // all that it writes is in there
    std::string runs_in = {};              // where it runs; empty: there
    std::chrono::steady_clock::time_point deadline;
    std::uint64_t bytes_max = 0;  // of all files in the directory together
    std::stop_token stop = {};    // asked for from any thread: it is killed at once
    std::string output = {};      // a file in the directory that has all of stdout; empty: none
};

struct CommandEnd {
    bool succeeded = false;
    std::string said;  // the end of stdout and stderr, or of stderr alone if stdout is in a file
};

/// kTimeout or kLimitExceeded if a bound was reached, kCancelled if it was stopped: then it was
/// killed. It gets no input and none of this process's descriptors.
Result<CommandEnd> run_bounded(const BoundedCommand& command);

/// Of regular files, as their sizes say; links are not followed.
std::uint64_t bytes_beneath(const std::string& directory);

}  // namespace cellkeep::environments
