// SPDX-License-Identifier: Apache-2.0
//
// Runs work that may crash or change its process in a forked child.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace cellkeep::cpp {

/// Returns what `work` returns in a forked child. Returns nullopt if the child crashes, uses more
/// than kChildSecondsMax of processor time or kChildBytesMax more memory, or cannot be forked. The
/// child's output is kept.
std::optional<std::string> run_in_child(const std::function<std::string()>& work);

inline constexpr unsigned kChildSecondsMax = 10;
/// Beyond the address space of the process that is forked.
inline constexpr std::size_t kChildBytesMax = 2ULL << 30U;

}  // namespace cellkeep::cpp
