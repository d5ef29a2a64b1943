// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/private_memory.hpp"

#include "protocol/support/syscall.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

namespace cellkeep::checkpoint {

namespace {

constexpr std::size_t kProcFileBytesMax = 64ULL << 10U;

/// The number behind a name at the beginning of a line.
std::optional<std::uint64_t> find_number(std::string_view text, std::string_view name) {
    const std::size_t line = text.find(name);
    if (line == std::string_view::npos) {
        return std::nullopt;
    }
    text.remove_prefix(line + name.size());
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::uint64_t> find_pid(const UniqueFd& pidfd) {
    const auto info =
        read_file("/proc/self/fdinfo/" + std::to_string(pidfd.get()), kProcFileBytesMax);
    // -1 of a process that has ended is no number here.
    return info.has_value() ? find_number(info.value(), "\nPid:") : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> read_private_bytes(const UniqueFd& pidfd) {
    const auto pid = find_pid(pidfd);
    if (!pid) {
        return std::nullopt;
    }
    const auto rollup =
        read_file("/proc/" + std::to_string(*pid) + "/smaps_rollup", kProcFileBytesMax);
    if (rollup.has_error() || find_pid(pidfd) != pid) {  // or the number may be another's by now
        return std::nullopt;
    }
    const auto clean = find_number(rollup.value(), "\nPrivate_Clean:");
    const auto dirty = find_number(rollup.value(), "\nPrivate_Dirty:");
    constexpr std::uint64_t kKilobyte = 1024;
    return clean && dirty ? std::optional((*clean + *dirty) * kKilobyte) : std::nullopt;
}

}  // namespace cellkeep::checkpoint
