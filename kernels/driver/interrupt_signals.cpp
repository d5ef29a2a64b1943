// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/interrupt_signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace cellkeep::kernels::driver {

Result<InterruptSignals> InterruptSignals::block() {
    sigset_t set{};
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    if (const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
        return Error::from_errno(error, "pthread_sigmask(SIGINT)");
    }
    const int fd = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        return Error::from_errno(errno, "signalfd");
    }
    return InterruptSignals(UniqueFd(fd));
}

bool InterruptSignals::drain() const {
    signalfd_siginfo info{};
    bool any = false;
    while (::read(fd_.get(), &info, sizeof(info)) > 0) {
        any = true;
    }
    return any;
}

}  // namespace cellkeep::kernels::driver
