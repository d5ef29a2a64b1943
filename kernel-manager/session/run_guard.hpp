// SPDX-License-Identifier: Apache-2.0
//
// What limits, budgets and the circuit breaker see of a session: who may run now, how long, how
// much a run has said, what the sandbox refused to it, and which limit it ended with. LiveSession
// tells it what happens and does what it says. Knows no clock and no sandbox. Not thread-safe.
#pragma once

#include "kernel-manager/session/budgets.hpp"
#include "kernel-manager/session/circuit_breaker.hpp"
#include "kernel-manager/session/limit_reason.hpp"
#include "kernel-manager/session/output_meter.hpp"
#include "kernel-manager/session/refusal.hpp"
#include "protocol/message.hpp"
#include "sandbox/sandbox.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace cellkeep::session {

class RunGuard {
 public:
    using Time = std::chrono::steady_clock::time_point;

    explicit RunGuard(std::uint32_t consecutive_failures) : breaker_(consecutive_failures) {}

    /// From now on the session is somebody's: CPU time counts from here.
    void hand_out(const sandbox::Usage& usage, const SessionLimits& limits, Time now);
    void see(const sandbox::Usage& usage);

    // --- before a run
    /// A budget that is used up: nobody runs code any more.
    std::optional<Refusal> find_exhausted(const SessionLimits& limits) const {
        return budgets_.find_exhausted(limits);
    }
    /// The same, or the circuit breaker, which only stops agents: people at notebooks see their
    /// errors.
    std::optional<Refusal> refuse_agent(const SessionLimits& limits, Time now) const;
    void accept_agent();
    void accept_client() { budgets_.add_execution(); }

    // --- a run
    void begin(const sandbox::Usage& usage, const SessionLimits& limits, Time now);
    Budgets::Allowance wall_time(const SessionLimits& limits, std::chrono::milliseconds asked);
    Budgets::Allowance cpu_time(const SessionLimits& limits);
    std::chrono::microseconds cpu_at_begin() const { return at_begin_.cpu_time; }

    /// A message of the interpreter's. True: it has said more than it may, and what runs must be
    /// cut with kOutputLimit; told once for each run, and once for all that is said between two.
    bool passes_output(std::uint64_t bytes, Time now);
    void on_denied(const sandbox::Denial& denial);
    void on_reply(const protocol::Message& reply);
    /// The server stops the run. The first reason stays.
    void on_cut(Cut cut);

    /// How the run was cut, in words for a person at a notebook.
    std::string describe_cut(const SessionLimits& limits) const;
    /// The limit that the run ended with, if it was one; the first that struck.
    std::optional<LimitHit> end(
        const sandbox::Usage& usage,
        const std::optional<Death>& death,
        const SessionLimits& limits,
        Time now);
    void end_agent(CircuitVote vote, Time now) { breaker_.on_end(vote, now); }
    void add_artifacts(std::uint64_t bytes) { budgets_.add_artifacts(bytes); }

    const BudgetUse& used() const { return budgets_.used(); }
    CircuitInfo circuit(Time now) const { return breaker_.info(now); }

 private:
    Budgets budgets_;
    CircuitBreaker breaker_;
    OutputMeter meter_;
    std::chrono::microseconds cpu_before_{0};

    // of the present run
    bool running_ = false;
    Time began_at_;
    sandbox::Usage at_begin_;
    Budgets::Allowance wall_;
    Budgets::Allowance cpu_;
    CutFacts cut_;
    std::optional<OutputMeter::Bound> passed_;
    std::optional<ErrorFacts> error_;
    RunCounts counts_;
};

}  // namespace cellkeep::session
