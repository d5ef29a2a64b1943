// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/session_account.hpp"

#include <algorithm>

namespace cellkeep::session {

void SessionAccount::see(const sandbox::Usage& usage) {
    budgets_.set_cpu(std::max(std::chrono::microseconds{0}, usage.cpu_time - cpu_before_));
}

std::optional<Refusal> SessionAccount::refuse_agent(const SessionLimits& limits, Time now) const {
    auto exhausted = budgets_.find_exhausted(limits);
    return exhausted.has_value() ? exhausted : breaker_.refusal(now);
}

void SessionAccount::accept_agent() {
    budgets_.add_execution();
    breaker_.on_accepted();
}

}  // namespace cellkeep::session
