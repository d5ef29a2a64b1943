// SPDX-License-Identifier: Apache-2.0
#include "tests/support/held_process.hpp"

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

namespace cellkeep::test {

Result<HeldProcess> HeldProcess::hold(pid_t pid) {
    if (::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) < 0) {
        return Error::from_errno(errno, "ptrace(PTRACE_SEIZE)");
    }
    return HeldProcess(pid);
}

HeldProcess::HeldProcess(HeldProcess&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}

HeldProcess::~HeldProcess() {
    if (pid_ > 0) {
        // Ignored: the test has failed before; the tracer's end releases the process, too.
        (void)::ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
        (void)::waitpid(pid_, nullptr, WNOHANG | __WALL);
    }
}

void HeldProcess::release() {
    const pid_t pid = std::exchange(pid_, 0);
    int status = 0;
    while (true) {
        const pid_t got = ::waitpid(pid, &status, __WALL);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 || WIFEXITED(status) || WIFSIGNALED(status)) {
            return;
        }
        // A signal that it got while it was held has stopped it.
        (void)::ptrace(PTRACE_CONT, pid, nullptr, nullptr);  // Ignored: it is dying.
    }
}

pid_t pid_of(int pidfd) {
    std::ifstream info("/proc/self/fdinfo/" + std::to_string(pidfd));
    std::string key;
    while (info >> key) {
        if (key == "Pid:") {
            pid_t pid = -1;
            info >> pid;
            return pid;
        }
    }
    return -1;
}

}  // namespace cellkeep::test
