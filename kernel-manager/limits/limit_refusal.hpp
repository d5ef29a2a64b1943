// SPDX-License-Identifier: Apache-2.0
//
// Why a session takes no more executions, with the numbers that a program acts on: a budget of its
// life that is used up, or its circuit breaker. A value.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace cellkeep::session {

struct LimitRefusal {
    enum class Kind { kBudget, kCircuitOpen };
    Kind kind = Kind::kBudget;
    /// The budget's wire name ("total_cpu_ms"), or "consecutive_failures".
    std::string budget;
    std::uint64_t used = 0;  // in the unit of its name
    std::uint64_t limit = 0;
    /// When to try again. Without a value another try does not help.
    std::optional<std::chrono::milliseconds> retry_after;
    /// One sentence what, and one what to do.
    std::string message;
    std::string hint;
};

}  // namespace cellkeep::session
