// SPDX-License-Identifier: Apache-2.0
//
// Limits of a sandbox that lives, made stricter. What is not set stays.
#pragma once

#include <cstdint>
#include <optional>

namespace cellkeep::sandbox {

struct LimitsChange {
    std::optional<std::uint64_t> memory_bytes;
    std::optional<std::uint32_t> processes;
    std::optional<double> cpu_cores;
};

}  // namespace cellkeep::sandbox
