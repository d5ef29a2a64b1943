// SPDX-License-Identifier: Apache-2.0
//
// Reads files of /proc without allocating. Rules of child_setup.hpp apply.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace cellkeep::sandbox {

/// "PREFIX NUMBER", as of "/proc/self/fd/" and a descriptor: a C string. The prefix is a literal.
class ProcPath {
 public:
    ProcPath(std::string_view prefix, int number) noexcept;
    const char* c_str() const { return text_.data(); }

 private:
    std::array<char, 48> text_{};
};

/// The beginning of a file, as much as fits; empty if it cannot be read.
std::string_view read_start(const char* path, std::span<char> buffer) noexcept;

/// The number right behind the first `key` and blanks.
std::optional<std::uint64_t> find_number(
    std::string_view text, std::string_view key, int base = 10) noexcept;

/// The names in an open directory that are numbers, from the first on: as many as fit into
/// `numbers`. Returns how many there are; an errno below 0.
ssize_t list_numbers(int directory, std::span<int> numbers) noexcept;

}  // namespace cellkeep::sandbox
