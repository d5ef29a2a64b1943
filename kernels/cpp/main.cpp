// SPDX-License-Identifier: Apache-2.0
//
// cellkeep-driver-cpp: C++ cells. Two processes from the start: the supervisor, which has the
// kernel's descriptors, and the interpreter (README.md).
#include "kernels/cpp/compile/compiler.hpp"
#include "kernels/cpp/process/channel.hpp"
#include "kernels/cpp/process/interpreter_process.hpp"
#include "kernels/cpp/process/supervisor.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace {

using cellkeep::UniqueFd;

// The contract's (kernels/driver/README.md).
constexpr int kRequests = 3;
constexpr int kEvents = 4;

int fail(const char* what) {
    const std::string why = std::generic_category().message(errno);
    (void)std::fprintf(stderr, "cellkeep-driver-cpp: %s: %s\n", what, why.c_str());
    return 1;
}

int interpret(
    UniqueFd socket, UniqueFd wake, pid_t supervisor, const sigset_t& signals, const char* folder) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != supervisor) {
        return 1;
    }
    (void)::close(kRequests);
    (void)::close(kEvents);
    (void)::pthread_sigmask(SIG_SETMASK, &signals, nullptr);
    cellkeep::cpp::Channel channel(std::move(socket), std::move(wake));
    return cellkeep::cpp::run_interpreter(channel, supervisor, folder);
}

}  // namespace

/// A driver; its argument is the folder of its headers. The build calls it with `--precompile`.
int main(int argc, char** argv) {
    if (argc == 4 && std::strcmp(argv[1], "--precompile") == 0) {
        return cellkeep::cpp::precompile(argv[2], argv[3]) ? 0 : 1;
    }
    if (argc != 2) {
        (void)std::fputs(
            "usage: cellkeep-driver-cpp FOLDER | --precompile FILE DEPENDENCIES\n", stderr);
        return 2;
    }
    for (const int fd : {kRequests, kEvents}) {
        if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
            return fail("descriptors 3 and 4 must be pipes to and from a kernel");
        }
    }
    std::array<int, 2> ends{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return fail("socketpair");
    }
    UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return fail("pipe2");
    }
    UniqueFd wake_read(ends[0]);
    UniqueFd wake_write(ends[1]);
    sigset_t before;
    sigset_t watched;
    ::sigemptyset(&watched);
    ::sigaddset(&watched, SIGINT);
    ::sigaddset(&watched, SIGCHLD);
    (void)::pthread_sigmask(SIG_BLOCK, &watched, &before);
    UniqueFd signals(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    // The copies that go on are not our children, but our children's.
    if (!signals || ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return fail("signalfd, PR_SET_CHILD_SUBREAPER");
    }
    const pid_t supervisor = ::getpid();
    const pid_t interpreter = ::fork();
    if (interpreter < 0) {
        return fail("fork");
    }
    if (interpreter == 0) {
        ours.reset();
        wake_write.reset();
        signals.reset();
        return interpret(std::move(theirs), std::move(wake_read), supervisor, before, argv[1]);
    }
    theirs.reset();
    wake_read.reset();
    (void)::signal(SIGPIPE, SIG_IGN);
    return cellkeep::cpp::supervise(
        {UniqueFd(kRequests),
         UniqueFd(kEvents),
         std::move(ours),
         std::move(wake_write),
         std::move(signals),
         interpreter});
}
