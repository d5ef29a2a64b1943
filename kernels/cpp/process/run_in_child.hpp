// SPDX-License-Identifier: Apache-2.0
//
// Work that may ruin the process that does it, done in a child.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace cellkeep::cpp {

/// What `work` returns in a forked child; nothing if the child crashes, takes longer than
/// kChildSecondsMax of processor time, or cannot be made. What it prints is printed.
std::optional<std::string> run_in_child(const std::function<std::string()>& work);

inline constexpr unsigned kChildSecondsMax = 10;

}  // namespace cellkeep::cpp
