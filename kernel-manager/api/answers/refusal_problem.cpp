// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/refusal_problem.hpp"

#include <algorithm>
#include <chrono>

namespace cellkeep::agent {

http::Problem to_problem(const session::LimitRefusal& refusal) {
    const std::string detail = refusal.message + " " + refusal.hint;
    if (refusal.kind == session::LimitRefusal::Kind::kBudget) {
        http::Problem problem = http::make_problem(
            429, "budget-exhausted", "A budget of the session is used up", detail);
        problem.extensions = {
            {"budget", refusal.budget}, {"used", refusal.used}, {"limit", refusal.limit}};
        problem.retry_after_seconds.reset();
        return problem;
    }
    http::Problem problem = http::make_problem(
        429, "circuit-open", "The last executions of this session failed", detail);
    const auto wait = refusal.retry_after.value_or(std::chrono::seconds(1));
    problem.extensions = {
        {"failures", refusal.used}, {"threshold", refusal.limit}, {"retry_after_ms", wait.count()}};
    problem.retry_after_seconds = static_cast<int>(
        std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(wait).count()));
    return problem;
}

}  // namespace cellkeep::agent
