// SPDX-License-Identifier: Apache-2.0
//
// The refused system calls that the server reports to a session by name: those that no program
// makes by accident. The filter refuses the others without a report.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace cellkeep::sandbox {

/// Refused whatever their arguments. (socket with a foreign family or raw, and clone with a
/// namespace flag, are reported besides: seccomp_policy.cpp.)
inline constexpr std::array kReportedCalls{
    // Namespaces, mounts, roots.
    "unshare",
    "setns",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "move_mount",
    "open_tree",
    "mount_setattr",
    "swapon",
    "swapoff",
    "quotactl",
    // Other processes.
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "pidfd_getfd",
    "kcmp",
    // Programs and rings in the kernel, faults in user space.
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "seccomp",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    // Keys.
    "add_key",
    "request_key",
    "keyctl",
    // The machine.
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "syslog",
    "acct",
    "iopl",
    "ioperm",
    "lookup_dcookie",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "sethostname",
    "setdomainname",
    // Files by handle, everybody's file events.
    "name_to_handle_at",
    "open_by_handle_at",
    "fanotify_init"};

/// The name of a system call of this architecture, or "system call <number>".
std::string system_call_name(std::uint32_t number);

}  // namespace cellkeep::sandbox
