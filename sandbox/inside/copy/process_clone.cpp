// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/copy/process_clone.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#if defined(__x86_64__)

static_assert(SYS_clone == 56 && (CLONE_VM | CLONE_VFORK) == 0x4100 && SIGCHLD == 17);

// The return address waits in a register, because the child's calls overwrite its place on the
// stack before the caller returns.
asm(R"(
.pushsection .text
.globl cellkeep_lend_memory
.type cellkeep_lend_memory, @function
cellkeep_lend_memory:
    .cfi_startproc
    endbr64
    pop %r9
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %r9
    or $0x4111, %rdi
    xor %esi, %esi
    xor %edx, %edx
    xor %r10d, %r10d
    xor %r8d, %r8d
    mov $56, %eax
    syscall
    push %r9
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rip, 0
    ret
    .cfi_endproc
.size cellkeep_lend_memory, .-cellkeep_lend_memory
.popsection
)");

#else

extern "C" long cellkeep_lend_memory(unsigned long flags) noexcept {
    const long pid = ::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, 0UL);
    return pid < 0 ? -errno : pid;
}

#endif

namespace cellkeep::sandbox {

int note_own_thread(ThreadNotes& notes) noexcept {
    if (::prctl(PR_GET_TID_ADDRESS, &notes.tid_address, 0L, 0L, 0L) < 0 ||
        ::syscall(SYS_get_robust_list, 0, &notes.robust_list, &notes.robust_size) < 0) {
        return errno;
    }
    return 0;
}

pid_t clone_process(const ThreadNotes& notes, CloneOrder order) noexcept {
    const unsigned long flags = (order.renumber ? CLONE_CHILD_SETTID : 0) |
                                (order.sibling ? CLONE_PARENT : 0) | CLONE_CHILD_CLEARTID | SIGCHLD;
#if defined(__x86_64__)
    const long pid = ::syscall(SYS_clone, flags, nullptr, nullptr, notes.tid_address, 0UL);
#else  // clone(2): the last two arguments change places
    const long pid = ::syscall(SYS_clone, flags, nullptr, nullptr, 0UL, notes.tid_address);
#endif
    if (pid == 0) {
        // Ignored: it fails only for a wrong size.
        (void)::syscall(SYS_set_robust_list, notes.robust_list, notes.robust_size);
    }
    return static_cast<pid_t>(pid);
}

}  // namespace cellkeep::sandbox
