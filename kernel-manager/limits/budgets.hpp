// SPDX-License-Identifier: Apache-2.0
//
// What one session's life has cost and whether a budget of it is used up. Counts only; measures
// nothing, knows no clock. Not thread-safe.
#pragma once

#include "kernel-manager/limits/limit_refusal.hpp"
#include "kernel-manager/limits/limits.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace cellkeep::session {

struct BudgetUse {
    std::uint64_t executions = 0;  // accepted: of agents, and cells of Jupyter clients
    std::chrono::microseconds wall{0};
    std::chrono::microseconds cpu{0};
    std::uint64_t output_bytes = 0;
    std::uint64_t artifact_bytes = 0;
};

class Budgets {
 public:
    void add_execution() { ++used_.executions; }
    void add_wall(std::chrono::microseconds time) { used_.wall += time; }
    /// Of the session's life so far; never goes back.
    void set_cpu(std::chrono::microseconds total);
    void add_output(std::uint64_t bytes) { used_.output_bytes += bytes; }
    void add_artifacts(std::uint64_t bytes) { used_.artifact_bytes += bytes; }

    const BudgetUse& used() const { return used_; }
    /// As another program in this process has counted.
    void go_on(const BudgetUse& used) { used_ = used; }

    /// The first budget that leaves no room for another execution.
    std::optional<LimitRefusal> find_exhausted(const SessionLimits& limits) const;

    /// What one run may still use: its own limit or what a budget leaves, whichever is less; at
    /// least 1 ms. from_budget: the budget is less.
    struct Allowance {
        std::chrono::milliseconds time{0};
        bool from_budget = false;
    };
    /// others: what runs that go on beside it have taken so far.
    Allowance allow_wall(
        const SessionLimits& limits,
        std::chrono::milliseconds asked,
        std::chrono::microseconds others = std::chrono::microseconds{0}) const;
    /// used: what of the CPU time seen so far was this run's.
    Allowance allow_cpu(
        const SessionLimits& limits,
        std::chrono::microseconds used = std::chrono::microseconds{0}) const;

 private:
    BudgetUse used_;
};

}  // namespace cellkeep::session
