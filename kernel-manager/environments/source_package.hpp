// SPDX-License-Identifier: Apache-2.0
//
// Packages that an environment may build from their source: what an operator may name, what of the
// requirements is about one, and what its build gave. The build itself is the caller's
// (SourceBuilder), because it needs a sandbox. Values; pure functions.
#pragma once

#include "protocol/support/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::environments {

/// Packages of one environment that are built from source.
inline constexpr std::size_t kSourcePackagesMax = 32;
/// Bytes of a wheel's file name.
inline constexpr std::size_t kWheelNameBytesMax = 255;

/// What one build gets. It may run code of the package's author.
struct SourceOrder {
    std::string name;                       // normalised
    std::vector<std::string> requirements;  // lines that name it, or its name
    std::string index;                      // an address; "": PyPI
    std::string directory;                  // where its wheel goes
    std::chrono::steady_clock::time_point deadline;
    std::uint64_t bytes_max = 0;  // of the wheel
};

/// Builds one package; the wheel's file name in the directory. What it gave is not to be trusted.
using SourceBuilder = std::function<Result<std::string>(const SourceOrder&)>;

/// Normalised, each once. kInvalidArgument for what is no name, kLimitExceeded beyond the bound.
Result<std::vector<std::string>> check_source_names(const std::vector<std::string>& names);

/// The normalised name of the package that a line of parse_requirements() asks for.
std::string name_in(std::string_view requirement);

/// The lines about this package; its name alone if there is none.
std::vector<std::string> lines_about(
    const std::vector<std::string>& requirements, std::string_view name);

/// A line without its hashes. Those are of the source, and what it gave is another file.
std::string without_hashes(std::string_view requirement);

/// "docopt==0.6.2": what keeps the installer to the wheel that was built. kProtocol if the file
/// name is no wheel's, or another package's: a build gives what it was asked for and nothing else.
Result<std::string> pin_built(std::string_view file, std::string_view name);

}  // namespace cellkeep::environments
