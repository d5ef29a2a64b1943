// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/session_account.hpp"

#include <algorithm>

namespace cellkeep::session {

void SessionAccount::see(std::chrono::microseconds cpu_time) {
    budgets_.set_cpu(std::max(std::chrono::microseconds{0}, cpu_time - cpu_before_));
}

std::optional<LimitRefusal> SessionAccount::refuse_agent(
    const SessionLimits& limits, Time now) const {
    auto exhausted = budgets_.find_exhausted(limits);
    return exhausted.has_value() ? exhausted : breaker_.refusal(now);
}

void SessionAccount::accept_agent() {
    budgets_.add_execution();
    breaker_.on_accepted();
}

void SessionAccount::begin_run(Time now) {
    ++runs_;
    began_ += now.time_since_epoch();
}

void SessionAccount::end_run(Time began, Time now) {
    --runs_;
    began_ -= began.time_since_epoch();
    budgets_.add_wall(std::chrono::duration_cast<std::chrono::microseconds>(now - began));
}

std::chrono::microseconds SessionAccount::running_for(Time now) const {
    const auto runs = static_cast<Time::rep>(runs_);
    return std::chrono::duration_cast<std::chrono::microseconds>(
        runs * now.time_since_epoch() - began_);
}

}  // namespace cellkeep::session
