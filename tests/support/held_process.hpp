// SPDX-License-Identifier: Apache-2.0
//
// Holds a dying process of a sandbox: killed, it stays a zombie that neither its parent nor its
// namespace's pid 1 can reap until release(), because a tracer comes first (ptrace(2), "Death under
// ptrace"). So it looks like a process that takes seconds to die, for exactly as long as a test
// wants. One thread holds and releases.
#pragma once

#include "protocol/support/result.hpp"

#include <sys/types.h>

namespace cellkeep::test {

class HeldProcess {
 public:
    /// pid as this process sees it. kSystem if tracing is not allowed.
    static Result<HeldProcess> hold(pid_t pid);

    HeldProcess(HeldProcess&& other) noexcept;
    HeldProcess& operator=(HeldProcess&&) = delete;
    HeldProcess(const HeldProcess&) = delete;
    HeldProcess& operator=(const HeldProcess&) = delete;
    ~HeldProcess();

    pid_t pid() const { return pid_; }
    /// Waits for its death, which must come, and lets its parent reap it.
    void release();

 private:
    explicit HeldProcess(pid_t pid) : pid_(pid) {}

    pid_t pid_ = 0;
};

/// The process of a pidfd (pidfd_open(2)), as this process sees it; -1 if it has been reaped.
pid_t pid_of(int pidfd);

}  // namespace cellkeep::test
