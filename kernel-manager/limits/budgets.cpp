// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/budgets.hpp"

#include <algorithm>
#include <string>

namespace cellkeep::session {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

std::uint64_t whole_milliseconds(microseconds time) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<milliseconds>(time).count());
}

std::optional<std::uint64_t> count(std::optional<milliseconds> limit) {
    return limit.has_value() ? std::optional(static_cast<std::uint64_t>(limit->count()))
                             : std::nullopt;
}

/// Whole milliseconds that are left of a budget; none left is 0.
milliseconds left_of(milliseconds limit, microseconds used) {
    return std::max(milliseconds{0}, std::chrono::duration_cast<milliseconds>(limit - used));
}

Budgets::Allowance allow(milliseconds own, std::optional<milliseconds> budget, microseconds used) {
    if (!budget.has_value() || left_of(*budget, used) >= own) {
        return {own, false};
    }
    return {std::max(milliseconds{1}, left_of(*budget, used)), true};
}

}  // namespace

void Budgets::set_cpu(microseconds total) {
    used_.cpu = std::max(used_.cpu, total);
}

std::optional<LimitRefusal> Budgets::find_exhausted(const SessionLimits& limits) const {
    struct Row {
        const char* name;
        const char* what;
        std::uint64_t used;
        std::optional<std::uint64_t> limit;
    };
    const Row rows[] = {
        {"executions", "executions", used_.executions, limits.executions},
        {"total_wall_ms",
         "ms of running time",
         whole_milliseconds(used_.wall),
         count(limits.total_wall)},
        {"total_cpu_ms", "ms of CPU time", whole_milliseconds(used_.cpu), count(limits.total_cpu)},
        {"total_output_bytes", "bytes of output", used_.output_bytes, limits.total_output_bytes},
        {"total_artifact_bytes",
         "bytes of artifacts",
         used_.artifact_bytes,
         limits.total_artifact_bytes},
    };
    for (const Row& row : rows) {
        if (!row.limit.has_value() || row.used < *row.limit) {
            continue;
        }
        LimitRefusal refusal;
        refusal.kind = LimitRefusal::Kind::kBudget;
        refusal.budget = row.name;
        refusal.used = row.used;
        refusal.limit = *row.limit;
        refusal.message = "The session's budget of " + std::to_string(*row.limit) + " " + row.what +
                          " (" + row.name + ") is used up: " + std::to_string(row.used) +
                          " were used.";
        refusal.hint =
            "Files can still be read: save what you need, and create a new session to go on.";
        return refusal;
    }
    return std::nullopt;
}

Budgets::Allowance Budgets::allow_wall(
    const SessionLimits& limits, milliseconds asked, microseconds others) const {
    return allow(asked, limits.total_wall, used_.wall + others);
}

Budgets::Allowance Budgets::allow_cpu(const SessionLimits& limits, microseconds used) const {
    return allow(limits.cpu, limits.total_cpu, used_.cpu - used);
}

}  // namespace cellkeep::session
