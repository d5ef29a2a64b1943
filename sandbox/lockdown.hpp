// SPDX-License-Identifier: Apache-2.0
//
// The parts of the wall that a process puts on itself, each for good: nested user namespaces,
// keyring, rlimits, capabilities, no_new_privs, Landlock, seccomp. Rules of child_setup.hpp apply.
#pragma once

#include "sandbox/child_setup.hpp"

namespace cellkeep::sandbox {

/// bubblewrap's recipe: allow one more user namespace in this one, enter it, and check that a
/// further one is refused. The namespace that owns the mounts and the network is then out of reach.
int disable_user_namespaces(const ChildState& state);

int join_new_session_keyring();
int set_rlimits(const Plan& plan);
int drop_capabilities();
int apply_landlock(std::int32_t& abi);
int install_seccomp(const Plan& plan);

}  // namespace cellkeep::sandbox
