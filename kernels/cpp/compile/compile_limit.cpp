// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/compile/compile_limit.hpp"

#include <unistd.h>

namespace cellkeep::cpp {

namespace {

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): signal handlers are given
// nothing. Written while no timer runs.
int g_limit_channel_fd = -1;
std::string g_line;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

extern "C" void on_limit(int /*signal*/) {
    (void)write_fully(g_limit_channel_fd, g_line);
    ::_exit(0);
}

}  // namespace

CompileLimit::CompileLimit(const Channel& channel, const std::string& failure) {
    g_limit_channel_fd = channel.fd();
    g_line = static_cast<char>(Word::kFailed) + failure + '\n';
    struct sigaction action {};
    action.sa_handler = &on_limit;
    action.sa_flags = SA_ONSTACK;
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGXCPU;
    if (::sigaction(SIGXCPU, &action, &before_) != 0) {
        return;
    }
    set_ = ::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
    itimerspec when{};
    when.it_value.tv_sec = kCompileSeconds;
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
