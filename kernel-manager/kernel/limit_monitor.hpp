// SPDX-License-Identifier: Apache-2.0
//
// What limits and budgets see of one interpreter's runs: how long one may take, how much it has
// said, what the sandbox refused to it, and which limit it ended with. RunWatch tells it what
// happens and does what it says. Knows no clock and no sandbox. Not thread-safe.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/limits/budgets.hpp"
#include "kernel-manager/limits/limit_reason.hpp"
#include "kernel-manager/limits/session_account.hpp"
#include "kernel-manager/output/output_meter.hpp"
#include "protocol/message.hpp"
#include "sandbox/sandbox.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

class LimitMonitor {
 public:
    using Time = std::chrono::steady_clock::time_point;

    /// The account must live longer.
    explicit LimitMonitor(SessionAccount& account) : account_(&account) {}

    /// From now on it is counted what is said; before that nothing passes.
    void listen(const SessionLimits& limits, Time now);

    // --- a run
    void begin(const sandbox::Usage& usage, const SessionLimits& limits, Time now);
    /// now: nothing, when it begins.
    Budgets::Allowance wall_time(
        const SessionLimits& limits,
        std::chrono::milliseconds asked,
        std::optional<Time> now = std::nullopt);
    /// used: by this run so far, of what the account has seen.
    Budgets::Allowance cpu_time(
        const SessionLimits& limits, std::chrono::microseconds used = std::chrono::microseconds{0});
    std::chrono::microseconds cpu_at_begin() const { return at_begin_.cpu_time; }

    /// A message of the interpreter's. True: it has said more than it may, and what runs must be
    /// cut with kOutputLimit; reported once for each run, and once for all output between two runs.
    bool passes_output(std::uint64_t bytes, Time now);
    void on_denied(const sandbox::Denial& denial);
    void on_reply(const protocol::Message& reply);
    /// The server stops the run. The first reason stays.
    void on_cut(Cut cut);

    /// What is known of a run whose code goes on, for another program in this process. How much it
    /// may still say at once begins anew there; the session's budget does not.
    struct Passed {
        Time began_at;
        std::chrono::microseconds cpu_at_begin{0};
        std::uint64_t oom_kills_at_begin = 0;
        std::uint64_t process_refusals_at_begin = 0;
        std::vector<sandbox::Denial> denials;
    };
    /// Its run is another program's.
    Passed pass_on();
    /// In place of begin().
    void go_on(Passed passed, const SessionLimits& limits, Time now);

    /// The code of the run has raised, as its reply says.
    bool has_failed() const { return running_ && error_.has_value(); }
    /// How the run was cut, in words for a person at a notebook.
    std::string describe_cut(const SessionLimits& limits) const;
    /// Whether end() will look at more of the usage than its cpu_time: only a run that failed by
    /// itself can have ended with something that the sandbox counts.
    bool asks_for_counts(const std::optional<Death>& death) const;
    /// The limit that the run ended with, if it was one; the first that struck.
    std::optional<LimitHit> end(
        const sandbox::Usage& usage,
        const std::optional<Death>& death,
        const SessionLimits& limits,
        Time now);

 private:
    SessionAccount* account_;
    OutputMeter meter_;

    // of the present run
    bool running_ = false;
    std::optional<std::uint64_t> output_budget_;
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
