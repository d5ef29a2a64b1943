// SPDX-License-Identifier: Apache-2.0
//
// Pid 1 of a sandbox, already behind the whole wall: starts workers when the server asks, reaps
// every orphan, tells the server which workers ended, and dies with the server. Rules of
// child_setup.hpp apply; single-threaded, never busy-waits.
#pragma once

#include "sandbox/inside/child_setup.hpp"

namespace cellkeep::sandbox {

/// Serves until the server closes the control socket.
[[noreturn]] void serve(const ChildState& state) noexcept;

}  // namespace cellkeep::sandbox
