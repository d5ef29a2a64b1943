// SPDX-License-Identifier: Apache-2.0
//
// New processes of the calling thread, by clone(2) where the C library's fork() cannot be used: the
// parent is another process, or the memory is lent. Rules of child_setup.hpp apply.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace cellkeep::sandbox {

/// What the kernel keeps for a thread and not for one that is cloned from it (set_tid_address(2),
/// set_robust_list(2)). With one thread it is all that the C library's fork() does besides.
struct ThreadNotes {
    int* tid_address = nullptr;
    void* robust_list = nullptr;
    std::size_t robust_size = 0;
};

/// Of the calling thread. Returns an errno.
int note_own_thread(ThreadNotes& notes) noexcept;

struct CloneOrder {
    bool sibling = false;  // its parent is this process's
    /// The C library learns the thread's new number, which recursive mutexes of carried threads
    /// must not.
    bool renumber = false;
};

/// fork(2). notes: of the thread that goes on in it. Returns its number, 0 in it, -1 and errno.
pid_t clone_process(const ThreadNotes& notes, CloneOrder order) noexcept;

}  // namespace cellkeep::sandbox

extern "C" {
/// vfork(2), with flags of clone(2) besides: a process that costs no copy of the memory. It has the
/// caller's, stack included, until it ends, and the caller stands still so long. So it may not
/// return from the function that calls this, nor write what the caller reads afterwards. What it
/// forks has a memory of its own, in which it may. Returns its number, 0 in it, an errno below 0.
/// Other processors than x86-64: fork(2), of which all of that is true as well.
long cellkeep_lend_memory(unsigned long flags) noexcept __attribute__((returns_twice));
}
