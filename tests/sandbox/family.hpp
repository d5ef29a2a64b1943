// SPDX-License-Identifier: Apache-2.0
//
// A worker that has forked processes, and pid 1's adoption of those.
#pragma once

#include "sandbox/sandbox.hpp"

#include <sys/types.h>

#include <optional>

namespace cellkeep::test {

struct Family {
    sandbox::WorkerId parent = 0;
    pid_t sibling = 0;  // numbers inside
    pid_t child = 0;
    pid_t own = 0;
};

/// The worker, its sibling, which is a child of pid 1 and no worker, and its child.
Family start_family(sandbox::Sandbox& sandbox, sandbox::WorkerGroup group = 0);

Result<sandbox::Worker> adopt(
    sandbox::Sandbox& sandbox,
    pid_t forked,
    sandbox::WorkerGroup group,
    std::optional<sandbox::WorkerGroup> born_in = std::nullopt);
/// Fails the test case if it cannot be adopted.
sandbox::Worker must_adopt(
    sandbox::Sandbox& sandbox,
    pid_t forked,
    sandbox::WorkerGroup group,
    sandbox::WorkerGroup born_in);

}  // namespace cellkeep::test
