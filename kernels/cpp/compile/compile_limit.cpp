// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/compile/compile_limit.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace cellkeep::cpp {

namespace {

/// Of processor time between two looks at the limits: 100 ms.
constexpr long kLookNanoseconds = 100'000'000;
constexpr unsigned kLooksASecond = 1'000'000'000 / kLookNanoseconds;

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): signal handlers are given
// nothing. Written while no timer runs.
int g_limit_channel_fd = -1;
std::string g_time_line;
std::string g_memory_line;
std::size_t g_most_bytes = 0;
volatile std::sig_atomic_t g_looks = 0;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

/// The most that was resident since the process began. getrusage(2) is a plain system call, and so
/// fit for a signal handler.
std::size_t peak_bytes() {
    rusage usage{};
    (void)::getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

[[noreturn]] void fail_with(const std::string& line) {
    (void)write_fully(g_limit_channel_fd, line);
    ::_exit(0);
}

extern "C" void on_look(int /*signal*/) {
    const int before = errno;
    g_looks = g_looks + 1;
    if (g_looks >= static_cast<std::sig_atomic_t>(kCompileSeconds * kLooksASecond)) {
        fail_with(g_time_line);
    }
    if (peak_bytes() > g_most_bytes) {
        fail_with(g_memory_line);
    }
    errno = before;
}

}  // namespace

CompileLimit::CompileLimit(const Channel& channel, const Failures& failures) {
    g_limit_channel_fd = channel.fd();
    g_time_line = static_cast<char>(Word::kFailed) + failures.time + '\n';
    g_memory_line = static_cast<char>(Word::kFailed) + failures.memory + '\n';
    g_most_bytes = peak_bytes() + kCompileBytes;
    g_looks = 0;
    struct sigaction action {};
    action.sa_handler = &on_look;
    action.sa_flags = SA_ONSTACK | SA_RESTART;
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGXCPU;
    if (::sigaction(SIGXCPU, &action, &before_) != 0) {
        return;
    }
    set_ = ::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
    itimerspec when{};
    when.it_value.tv_nsec = kLookNanoseconds;
    when.it_interval = when.it_value;
    if (set_) {
        (void)::timer_settime(timer_, 0, &when, nullptr);
    }
}

CompileLimit::~CompileLimit() {
    if (set_) {
        (void)::timer_delete(timer_);
    }
    (void)::sigaction(SIGXCPU, &before_, nullptr);
}

}  // namespace cellkeep::cpp
