// SPDX-License-Identifier: Apache-2.0
//
// The parts of the wall that a process puts on itself, each for good: nested user namespaces,
// keyring, rlimits, capabilities, no_new_privs, Landlock, seccomp. Rules of child_setup.hpp apply.
#pragma once

#include "sandbox/inside/child_setup.hpp"

namespace cellkeep::sandbox {

/// bubblewrap's recipe: allow one more user namespace in this one, enter it, and check that a
/// further one is refused. The namespace that owns the mounts and the network is then out of reach.
int disable_user_namespaces(const ChildState& state);

int join_new_session_keyring();
int set_rlimits(const Plan& plan);

/// Soft and hard limit of this process and its children: at most the hard limit of before. 0, or an
/// errno. `resource` is an RLIMIT_* number.
int lower_rlimit(std::uint32_t resource, std::uint64_t value);
int drop_capabilities();

/// For a zygote alone. Capabilities (of its own user namespace) that survive an exec as they are.
int keep_capabilities();
/// For a zygote alone. Libraries tell a forked child by its process id having changed, and pid 2 of
/// one namespace has the number of pid 2 of every other: the zygote gets a number that none of the
/// first thousands of processes of a sandbox has.
int begin_pids_high(const ChildState& state);

int apply_landlock(const Plan& plan, std::int32_t& abi);

/// The plan's filter, last of all. With a listener for the calls it reports, if that can be had:
/// then denial_fd is its descriptor and denial_error 0. Otherwise those calls are refused without a
/// report, by the same filter, if reports_waived; or nothing is installed and the error is
/// denial_error's.
int install_seccomp(const Plan& plan, bool reports_waived, int& denial_fd, int& denial_error);

}  // namespace cellkeep::sandbox
