// SPDX-License-Identifier: Apache-2.0
//
// What an event of pid 1's means for the owner of the sandbox.
#pragma once

#include "sandbox/sandbox.hpp"
#include "sandbox/shared/messages.hpp"

namespace cellkeep::sandbox {

SandboxEvent read_event(const EventMessage& message);

}  // namespace cellkeep::sandbox
