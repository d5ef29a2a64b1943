// SPDX-License-Identifier: Apache-2.0
//
// Control files of cgroups that are read now and then. What is read often is a CounterFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cellkeep::sandbox {

/// Of the hierarchy that a directory is in: the files of one controller differ.
enum class CgroupVersion { kV1, kV2 };

/// Longer than any control file gets.
inline constexpr std::size_t kControlFileBytesMax = 1UL << 16U;

bool has_control_file(const std::string& path);
/// The number that the file begins with; 0 if it cannot be read or is none.
std::uint64_t read_number(const std::string& path);
/// The number after the key at the beginning of a line; 0 if it is not there.
std::uint64_t read_keyed(const std::string& path, std::string_view key);

}  // namespace cellkeep::sandbox
