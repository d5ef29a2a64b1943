// SPDX-License-Identifier: Apache-2.0
//
// What a session's life has cost so far and how its agents fare: its budgets and its circuit
// breaker, one of each however many interpreters it has. Knows no clock and no sandbox. Not
// thread-safe.
#pragma once

#include "kernel-manager/limits/budgets.hpp"
#include "kernel-manager/limits/circuit_breaker.hpp"
#include "kernel-manager/limits/limit_refusal.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "sandbox/sandbox.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace cellkeep::session {

class SessionAccount {
 public:
    using Time = std::chrono::steady_clock::time_point;

    explicit SessionAccount(std::uint32_t consecutive_failures) : breaker_(consecutive_failures) {}

    /// A client has the session from now on: CPU time counts from here. Both take the time that
    /// the session has used since its sandbox was made.
    void hand_out(std::chrono::microseconds cpu_time) { cpu_before_ = cpu_time; }
    void see(std::chrono::microseconds cpu_time);

    /// The budget that is used up, after which no code runs.
    std::optional<LimitRefusal> find_exhausted(const SessionLimits& limits) const {
        return budgets_.find_exhausted(limits);
    }
    /// The same, or the circuit breaker, which only stops agents: people at notebooks see their
    /// errors.
    std::optional<LimitRefusal> refuse_agent(const SessionLimits& limits, Time now) const;
    void accept_agent();
    void accept_client() { budgets_.add_execution(); }
    void end_agent(CircuitVote vote, Time now) { breaker_.on_end(vote, now); }
    void add_artifacts(std::uint64_t bytes) { budgets_.add_artifacts(bytes); }

    /// Runs of several interpreters may go on at once, and each counts.
    void begin_run(Time now);
    void end_run(Time began, Time now);
    std::size_t runs() const { return runs_; }
    /// What the runs that go on have taken so far, together.
    std::chrono::microseconds running_for(Time now) const;

    /// For LimitMonitor.
    Budgets& budgets() { return budgets_; }
    const BudgetUse& used() const { return budgets_.used(); }
    CircuitInfo circuit(Time now) const { return breaker_.info(now); }

    /// What it knows besides what runs (LimitMonitor::Passed), for another program in this process,
    /// and from one.
    struct Passed {
        BudgetUse used;
        CircuitBreaker::Passed breaker;
        std::chrono::microseconds cpu_before{0};
    };
    Passed pass_on() const { return {budgets_.used(), breaker_.pass_on(), cpu_before_}; }
    void go_on(const Passed& passed) {
        budgets_.go_on(passed.used);
        breaker_.go_on(passed.breaker);
        cpu_before_ = passed.cpu_before;
    }

 private:
    Budgets budgets_;
    CircuitBreaker breaker_;
    std::chrono::microseconds cpu_before_{0};
    std::size_t runs_ = 0;
    Time::duration began_{0};  // the sum of when they did
};

}  // namespace cellkeep::session
