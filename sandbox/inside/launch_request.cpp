// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/launch_request.hpp"

#include "sandbox/inside/init_socket.hpp"
#include "sandbox/inside/launch_steps.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cellkeep::sandbox {

namespace {

constexpr int kNotPlaced = 70;

/// Above every number that a launcher's descriptors get.
constexpr int kFirstReceivedFd = kLauncherCgroupFd + static_cast<int>(kCgroupFilesMax) + 2;

/// The received descriptors where launch_sandbox() looks for them, and no other. 0 or an errno.
int place_descriptors(LaunchDescriptors& received) {
    for (std::size_t i = 0; i < received.count; ++i) {
        // First all out of the way, so that placing one does not close another.
        received.fds[i] = ::fcntl(received.fds[i], F_DUPFD_CLOEXEC, kFirstReceivedFd);
        if (received.fds[i] < 0) {
            return errno;
        }
    }
    for (std::size_t i = 0; i < received.count; ++i) {
        const int place = i < kLaunchFdsMin
                              ? kLauncherControlFd + static_cast<int>(i)
                              : kLauncherCgroupFd + static_cast<int>(i - kLaunchFdsMin);
        if (::dup3(received.fds[i], place, O_CLOEXEC) < 0) {
            return errno;
        }
    }
    (void)::close(kLauncherNetworkFd);  // Ignored: there may be none.
    const auto above =
        static_cast<unsigned>(kLauncherCgroupFd + static_cast<int>(received.count - kLaunchFdsMin));
    return ::close_range(above, ~0U, 0) < 0 ? errno : 0;
}

/// Says at the launch's control socket why there will be no launcher.
void report_failed_fork(int control_fd, int error) {
    SetupMessage message;
    message.kind = SetupMessageKind::kFailed;
    message.step = SetupStep::kFork;
    message.error = error;
    message.report.outcome.fill(kControlNotReached);
    // Ignored: it fails if the server is gone, and then no process needs the message.
    (void)send_setup_message(control_fd, message, -1);
}

}  // namespace

bool receive_launch(int control_fd, LaunchDescriptors& received) {
    LaunchRequest request;
    iovec part{&request, sizeof(request)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kLaunchFdsMax)]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    ssize_t got = -1;
    do {
        got = ::recvmsg(control_fd, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    received.count = 0;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (got > 0 && header != nullptr && header->cmsg_level == SOL_SOCKET &&
        header->cmsg_type == SCM_RIGHTS) {
        const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (count > kLaunchFdsMax) {
            return false;  // The buffer's alignment may have room for one more.
        }
        received.count = count;
        std::memcpy(received.fds.data(), CMSG_DATA(header), count * sizeof(int));
    }
    return got == static_cast<ssize_t>(sizeof(request)) &&
           (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
           request.cgroup_files <= kCgroupFilesMax &&
           received.count == kLaunchFdsMin + request.cgroup_files;
}

void become_launcher(LaunchDescriptors& received, WarmEntry entry) {
    if (const int error = place_descriptors(received); error != 0) {
        report_failed_fork(received.fds[0], error);
        ::_exit(kNotPlaced);
    }
    ::_exit(launch_sandbox(entry));
}

void end_request(const LaunchDescriptors& received, int error) {
    if (error != 0) {
        report_failed_fork(received.fds[0], error);
    }
    for (std::size_t i = 0; i < received.count; ++i) {
        (void)::close(received.fds[i]);  // Ignored: the fork has its own.
    }
}

}  // namespace cellkeep::sandbox
