// SPDX-License-Identifier: Apache-2.0
//
// What threads of one process wake one another by: eventfds, pipes with both ends in the process,
// and the epolls that wait for them. A fork shares them, so a wake-up that is meant for one process
// may reach the other. Here the fork gets its own, with the same contents, at the same numbers.
//
// The process that they are shared with must stand still meanwhile. Rules of child_setup.hpp apply.
#pragma once

#include <cstddef>

namespace cellkeep::sandbox {

/// Of a process that may have its threads copied, open at once.
inline constexpr std::size_t kUnsharedDescriptorsMax = 4096;

/// Duplicates of a descriptor stay its duplicates. Returns an errno: E2BIG beyond
/// kUnsharedDescriptorsMax, EMFILE. What was not replaced yet is shared as before.
int unshare_descriptors() noexcept;

/// In a branch, which has a network of its own: TCP sockets that listen are replaced by such that
/// listen there, at the same addresses. What cannot be bound stays the parent's.
void rebind_listeners() noexcept;

}  // namespace cellkeep::sandbox
