// SPDX-License-Identifier: Apache-2.0
//
// From the fork of pid 1 to the worker's program: its descriptors, asserted, its process session,
// its directory. Everything else of the wall is inherited from pid 1. Rules of child_setup.hpp
// apply.
#pragma once

#include "sandbox/start_request.hpp"

#include <span>

namespace cellkeep::sandbox {

/// received: what becomes descriptors 1 and up, every one of them above the numbers it becomes.
/// Writes a WorkerFailure to failure_fd if there is no program in the end.
[[noreturn]] void become_worker(
    std::span<const int> received, const Start& start, int failure_fd) noexcept;

}  // namespace cellkeep::sandbox
