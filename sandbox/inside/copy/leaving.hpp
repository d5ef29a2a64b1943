// SPDX-License-Identifier: Apache-2.0
//
// How a fork of a copy that sleeps leaves its sandbox for a branch (sandbox/SECURITY.md,
// "Branches"). It has no capability. It may enter the branch's user namespaces because its own user
// made them, and the others because those own them; what it has there it gives away before it goes
// on. Rules of sleeping_copy.hpp apply.
#pragma once

#include "sandbox/inside/copy/process_clone.hpp"
#include "sandbox/shared/sleep_messages.hpp"

#include <span>

namespace cellkeep::sandbox {

/// Of the process that goes on in the branch (clone_process()).
struct ForkInside {
    ThreadNotes notes;
    bool renumber = false;
};

/// In a process that has lent the copy's memory. Waits at the gate for the server's word, enters
/// the namespaces (kBranchNamespaceCount of them), and forks into the branch, as a child of its
/// pid 1. Returns in that fork only, whose memory is its own; the process that called tells the
/// server through the gate, and ends.
void leave_for_branch(int gate, std::span<const int> namespaces, const ForkInside& inside) noexcept;

}  // namespace cellkeep::sandbox
