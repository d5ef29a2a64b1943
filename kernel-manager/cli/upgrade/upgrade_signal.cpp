// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/upgrade_signal.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace cellkeep::cli {

namespace {

sigset_t upgrade_signals() {
    sigset_t set;
    // Ignored: neither fails on a valid set (sigsetops(3)).
    (void)::sigemptyset(&set);
    (void)::sigaddset(&set, SIGUSR2);
    return set;
}

}  // namespace

Status hold_upgrade_signal() {
    const sigset_t set = upgrade_signals();
    if (const int failed = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); failed != 0) {
        return Error::from_errno(failed, "pthread_sigmask");
    }
    return ok();
}

UpgradeSignal::UpgradeSignal(
    boost::asio::io_context& io, UniqueFd fd, std::function<void()> on_signal)
    : signals_(io, fd.release()), on_signal_(std::move(on_signal)) {}

Result<std::shared_ptr<UpgradeSignal>> UpgradeSignal::create(
    boost::asio::io_context& io, std::function<void()> on_signal) {
    const sigset_t set = upgrade_signals();
    UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) {
        return Error::from_errno(errno, "signalfd");
    }
    // Not make_shared: the constructor is private.
    return std::shared_ptr<UpgradeSignal>(
        new UpgradeSignal(io, std::move(fd), std::move(on_signal)));
}

void UpgradeSignal::wait() {
    signals_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [self = shared_from_this()](const boost::system::error_code& error) {
            if (error) {
                return;
            }
            signalfd_siginfo info{};
            bool came = false;
            while (::read(self->signals_.native_handle(), &info, sizeof info) == sizeof info) {
                came = true;
            }
            self->wait();
            if (came) {
                self->on_signal_();
            }
        });
}

void UpgradeSignal::stop() {
    boost::system::error_code ignored;  // Ignored: it is closed in any case.
    (void)signals_.close(ignored);
}

}  // namespace cellkeep::cli
