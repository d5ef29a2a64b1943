// SPDX-License-Identifier: Apache-2.0
//
// The cgroup that a worker comes to. A process that is moved waits for a grace period of the
// kernel, so one that was forked where it may stay is not moved. A part of sandbox.cpp.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/server/sandbox_state.hpp"

#include <cstdint>
#include <optional>

namespace cellkeep::sandbox {

struct WorkerPlace {
    std::uint32_t own_cgroup = 0;  // RequestHeader
    UniqueFd procs;                // the descriptor that comes with it, or invalid
    /// The group in whose cgroup it must be; nullopt: pid 1 moves it.
    std::optional<WorkerGroup> stays_in;
};

/// See WorkerSpec::born_in. Changes the places of two cgroups if that asks for it.
Result<WorkerPlace> place_worker(SandboxState& state, const WorkerSpec& spec);

/// A process that pid 1 has adopted: whether it is where it must be, and who is to be killed first
/// when memory ends. kProtocol: it was elsewhere, and is killed.
Status settle_adopted(SandboxState& state, const AskedStart& asked, const Worker& worker);

}  // namespace cellkeep::sandbox
