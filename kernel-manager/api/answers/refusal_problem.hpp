// SPDX-License-Identifier: Apache-2.0
//
// A session's refusal as a problem: 429 with the numbers that a program acts on.
#pragma once

#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/limits/limit_refusal.hpp"

namespace cellkeep::agent {

/// budget-exhausted with members budget, used and limit, and no Retry-After, for waiting does not
/// help; circuit-open with failures, threshold and retry_after_ms, and Retry-After in whole
/// seconds.
http::Problem to_problem(const session::LimitRefusal& refusal);

}  // namespace cellkeep::agent
