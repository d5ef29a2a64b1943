// SPDX-License-Identifier: Apache-2.0
//
// Calls of tools that wait for a person's word: who waits, and the word. A principal sees those of
// sessions that it may see; only an administrator answers, so that no agent approves its own.
#pragma once

#include "kernel-manager/governance/approvals.hpp"
#include "kernel-manager/http/router.hpp"

#include <memory>

namespace cellkeep::api {

/// Null: nothing ever waits.
void add_approval_routes(http::Router& router, std::shared_ptr<governance::Approvals> approvals);

}  // namespace cellkeep::api
