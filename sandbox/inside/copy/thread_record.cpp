// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/copy/thread_record.hpp"

#if defined(__x86_64__)

#include "sandbox/inside/copy/kernel_call.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>

// cellkeep_resume() returns from cellkeep_save_registers() once more, with 1.
// cellkeep_begin_thread_on() is clone(2) onto a stack, where cellkeep_begin_thread() is called with
// the record.
extern "C" {
[[noreturn]] void cellkeep_resume(std::uint64_t* registers);
long cellkeep_begin_thread_on(
    unsigned long flags,
    void* stack,
    int* parent_tid,
    int* child_tid,
    std::uintptr_t thread_pointer,
    void* record);
void cellkeep_begin_thread(void* record);
}

asm(R"(
    .pushsection .text
    .globl cellkeep_save_registers
    .hidden cellkeep_save_registers
    .type cellkeep_save_registers, @function
cellkeep_save_registers:
    mov %rbx, (%rdi)
    mov %rbp, 8(%rdi)
    mov %r12, 16(%rdi)
    mov %r13, 24(%rdi)
    mov %r14, 32(%rdi)
    mov %r15, 40(%rdi)
    lea 8(%rsp), %rdx
    mov %rdx, 48(%rdi)
    mov (%rsp), %rdx
    mov %rdx, 56(%rdi)
    xor %eax, %eax
    ret
    .size cellkeep_save_registers, . - cellkeep_save_registers

    .globl cellkeep_resume
    .hidden cellkeep_resume
    .type cellkeep_resume, @function
cellkeep_resume:
    mov (%rdi), %rbx
    mov 8(%rdi), %rbp
    mov 16(%rdi), %r12
    mov 24(%rdi), %r13
    mov 32(%rdi), %r14
    mov 40(%rdi), %r15
    mov 48(%rdi), %rsp
    mov $1, %eax
    jmp *56(%rdi)
    .size cellkeep_resume, . - cellkeep_resume

    .globl cellkeep_begin_thread_on
    .hidden cellkeep_begin_thread_on
    .type cellkeep_begin_thread_on, @function
cellkeep_begin_thread_on:
    mov %rcx, %r10
    mov $56, %eax
    syscall
    test %rax, %rax
    jz 1f
    ret
1:  xor %ebp, %ebp
    mov %r9, %rdi
    call cellkeep_begin_thread@PLT
    hlt
    .size cellkeep_begin_thread_on, . - cellkeep_begin_thread_on
    .popsection
)");

namespace cellkeep::sandbox {

namespace {

struct rseq* own_rseq() {
    return reinterpret_cast<struct rseq*>(
        static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset);
}

/// Restartable sequences are registered by each thread (rseq(2)).
void register_rseq() {
    constexpr unsigned kSizeOfOld = 32;  // of the first version, and what glibc 2.36 registers
    struct rseq* const area = own_rseq();
    area->rseq_cs = 0;
    const unsigned size = __rseq_size > kSizeOfOld ? __rseq_size : kSizeOfOld;
    if (call_kernel(SYS_rseq, address_of(area), static_cast<long>(size), 0, RSEQ_SIG) < 0) {
        area->cpu_id_start = 0;
        area->cpu_id = static_cast<std::uint32_t>(RSEQ_CPU_ID_REGISTRATION_FAILED);
    }
}

}  // namespace

void note_thread(ThreadRecord& record) noexcept {
    record.thread_pointer = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
    record.tid_address = nullptr;
    (void)call_kernel(SYS_prctl, PR_GET_TID_ADDRESS, address_of(&record.tid_address));
    (void)call_kernel(
        SYS_get_robust_list, 0, address_of(&record.robust_list), address_of(&record.robust_size));
    (void)call_kernel(SYS_prctl, PR_GET_NAME, address_of(record.name.data()));
    record.processors_size = call_kernel(
        SYS_sched_getaffinity,
        0,
        static_cast<long>(record.processors.size()),
        address_of(record.processors.data()));
    record.has_rseq = __rseq_size > 0 && static_cast<int>(own_rseq()->cpu_id) >= 0;
}

int begin_again(ThreadRecord& record) noexcept {
    constexpr unsigned kBeginFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                     CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                                     CLONE_CHILD_CLEARTID;
    constexpr std::uintptr_t kFrameRoom = 512;  // below what the stopped frame may use
    constexpr std::uintptr_t kStackAlignment = 16;
    const std::uintptr_t top =
        (record.registers[kStackPointer] - kFrameRoom) & ~(kStackAlignment - 1);
    const long result = cellkeep_begin_thread_on(
        kBeginFlags,
        // NOLINTNEXTLINE(performance-no-int-to-ptr): a saved register is a number.
        reinterpret_cast<void*>(top),
        record.tid_address,
        record.tid_address,
        record.thread_pointer,
        &record);
    return result < 0 ? static_cast<int>(-result) : 0;
}

}  // namespace cellkeep::sandbox

/// The first code of a thread in a fork: on its old stack, below the frame of the handler.
void cellkeep_begin_thread(void* argument) {
    using cellkeep::sandbox::address_of;
    using cellkeep::sandbox::call_kernel;
    auto& record = *static_cast<cellkeep::sandbox::ThreadRecord*>(argument);
    (void)call_kernel(
        SYS_set_robust_list, address_of(record.robust_list), static_cast<long>(record.robust_size));
    if (record.has_rseq) {
        cellkeep::sandbox::register_rseq();
    }
    (void)call_kernel(SYS_prctl, PR_SET_NAME, address_of(record.name.data()));
    if (record.has_own_processors) {
        (void)call_kernel(
            SYS_sched_setaffinity, 0, record.processors_size, address_of(record.processors.data()));
    }
    cellkeep_resume(record.registers.data());
}

#endif
