// SPDX-License-Identifier: Apache-2.0
//
// A fork that a copy makes before one is asked for. It waits until the copy passes a request on to
// it. A rollback then does not wait for a fork, which takes long if the memory is large. The copy
// owns the fork: when the copy ends, the fork ends. Rules of sleeping_copy.hpp apply.
#pragma once

#include "sandbox/inside/copy/process_clone.hpp"

#include <sys/types.h>

#include <cstddef>
#include <span>

namespace cellkeep::sandbox {

struct ReadyFork {
    int socket = -1;  // the copy's end of a SOCK_SEQPACKET pair; -1: there is none
    pid_t number = 0;
};

/// Returns 0 in the fork, whose end of the pair takes the place of own_socket. Else the fork's
/// number or an errno below 0. Precondition: there is none.
long make_ready_fork(
    ReadyFork& ready, const ThreadNotes& notes, bool renumber, int own_socket) noexcept;

/// Passes a message and its descriptors on. There is no ready fork afterwards. Returns its number,
/// 0 if it had ended.
pid_t use_ready_fork(
    ReadyFork& ready, std::span<const std::byte> message, std::span<const int> fds) noexcept;

/// Ends it, and waits until its memory is gone.
void end_ready_fork(ReadyFork& ready) noexcept;

/// In a process that was forked from the copy: it is the copy's.
void forget_ready_fork(ReadyFork& ready) noexcept;

}  // namespace cellkeep::sandbox
