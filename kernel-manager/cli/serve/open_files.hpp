// SPDX-License-Identifier: Apache-2.0
//
// How many files the server may have open, and how many it needs.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace cellkeep::cli {

/// Descriptors of a server without sessions (31 and some connections of clients), and of each
/// session: 14 with one language that has run a cell, 10 for Jupyter clients over ZeroMQ once there
/// is one, 7 for each further language, 2 with checkpoints and 2 for each of these, and some
/// clients of its own. Few have all of it.
inline constexpr std::uint64_t kServerOpenFiles = 128;
inline constexpr std::uint64_t kSessionOpenFiles = 32;

/// The number of open files that a server with this number of sessions needs.
constexpr std::uint64_t open_files_needed(std::size_t sessions_max) {
    return kServerOpenFiles + kSessionOpenFiles * sessions_max;
}

/// Raises this process's limit of open files as far as it may and returns it: to its hard limit,
/// and, where that is lower than needed and the process may (CAP_SYS_RESOURCE, setrlimit(2)), the
/// hard limit to what is needed. Fails as getrlimit and setrlimit do; the limit is then as it was.
Result<std::uint64_t> raise_open_files(std::uint64_t needed);

/// A warning for the operator if this number of sessions needs more open files than the limit
/// allows. Returns nullopt if it does not.
std::optional<std::string> open_files_shortage(std::uint64_t limit, std::size_t sessions_max);

}  // namespace cellkeep::cli
