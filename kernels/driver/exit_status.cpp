// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/exit_status.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace cellkeep::kernels::driver {

std::string describe_exit(int status) {
    return WIFSIGNALED(status) ? "by signal " + std::to_string(WTERMSIG(status))
                               : "with exit code " + std::to_string(WEXITSTATUS(status));
}

void exit_like(int status) {
    (void)std::fflush(nullptr);
    if (WIFSIGNALED(status)) {
        const int number = WTERMSIG(status);
        (void)std::signal(number, SIG_DFL);
        sigset_t set{};
        (void)sigemptyset(&set);
        (void)sigaddset(&set, number);
        (void)::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
        (void)std::raise(number);
    }
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}

}  // namespace cellkeep::kernels::driver
