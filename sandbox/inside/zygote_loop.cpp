// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/zygote_loop.hpp"

#include "sandbox/inside/init_socket.hpp"
#include "sandbox/inside/launch_steps.hpp"
#include "sandbox/inside/signal_table.hpp"
#include "sandbox/shared/messages.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace cellkeep::sandbox {

namespace {

constexpr int kFailed = 70;

/// Above every number that a launcher's descriptors get.
constexpr int kFirstReceivedFd = kLauncherCgroupFd + static_cast<int>(kCgroupFilesMax) + 1;

struct Descriptors {
    std::array<int, kZygoteFdsMax> fds{};
    std::size_t count = 0;
};

void close_all(const Descriptors& received) {
    for (std::size_t i = 0; i < received.count; ++i) {
        (void)::close(received.fds[i]);  // Ignored: the fork has its own.
    }
}

/// How many entries the directory has; 0 if they cannot be counted.
std::uint32_t count_entries(const char* path) {
    DIR* directory = ::opendir(path);
    if (directory == nullptr) {
        return 0;
    }
    std::uint32_t count = 0;
    while (const dirent* entry = ::readdir(directory)) {  // NOLINT(concurrency-mt-unsafe)
        count += entry->d_name[0] != '.' ? 1U : 0U;
    }
    (void)::closedir(directory);  // Ignored: it was only read.
    return count;
}

/// Mappings of this process that a fork of it would not have to itself (proc_pid_maps(5)); many if
/// they cannot be counted.
std::uint32_t count_shared_mappings() {
    std::FILE* file = std::fopen("/proc/self/maps", "re");
    if (file == nullptr) {
        return ~0U;
    }
    std::uint32_t count = 0;
    char line[512];
    bool begins = true;
    while (std::fgets(line, sizeof(line), file) != nullptr) {
        const char* permissions = begins ? std::strchr(line, ' ') : nullptr;
        if (permissions != nullptr && std::strlen(permissions) > 4 && permissions[2] == 'w' &&
            permissions[4] == 's') {
            ++count;
        }
        begins = std::strchr(line, '\n') != nullptr;  // a long path goes on in the next one
    }
    (void)std::fclose(file);  // Ignored: it was only read.
    return count;
}

/// The sixth number of proc_pid_statm(5), in pages; 0 if it cannot be read.
std::uint64_t data_bytes() {
    std::FILE* file = std::fopen("/proc/self/statm", "re");
    if (file == nullptr) {
        return 0;
    }
    unsigned long pages = 0;
    const int got = std::fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages);
    (void)std::fclose(file);  // Ignored: it was only read.
    return got == 1 ? pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

ZygoteReady describe_process() {
    // Its descriptors: 0 to 2, the socket, and the one that counts them.
    constexpr std::uint32_t kOwn = 5;
    ZygoteReady ready;
    ready.threads = count_entries("/proc/self/task");
    const std::uint32_t open = count_entries("/proc/self/fd");
    ready.open_files = open > kOwn ? open - kOwn : 0;
    ready.shared_mappings = count_shared_mappings();
    ready.data_bytes = data_bytes();
    return ready;
}

enum class Received { kRequest, kNothing, kEnd };

Received receive(int control_fd, ZygoteRequest& request, Descriptors& received) {
    iovec part{&request, sizeof(request)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kZygoteFdsMax)]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = ::recvmsg(control_fd, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) {
        return Received::kNothing;
    }
    received.count = 0;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (got > 0 && header != nullptr && header->cmsg_level == SOL_SOCKET &&
        header->cmsg_type == SCM_RIGHTS) {
        const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (count > kZygoteFdsMax) {
            return Received::kEnd;  // The buffer's alignment may have room for one more.
        }
        received.count = count;
        std::memcpy(received.fds.data(), CMSG_DATA(header), count * sizeof(int));
    }
    const bool whole = got == static_cast<ssize_t>(sizeof(request)) &&
                       (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
                       request.cgroup_files <= kCgroupFilesMax &&
                       received.count == kZygoteFdsMin + request.cgroup_files;
    return whole ? Received::kRequest : Received::kEnd;
}

/// The received descriptors where launch_sandbox() looks for them, and no other. 0 or an errno.
int place_descriptors(Descriptors& received) {
    for (std::size_t i = 0; i < received.count; ++i) {
        // First all out of the way, so that placing one does not close another.
        received.fds[i] = ::fcntl(received.fds[i], F_DUPFD_CLOEXEC, kFirstReceivedFd);
        if (received.fds[i] < 0) {
            return errno;
        }
    }
    for (std::size_t i = 0; i < received.count; ++i) {
        const int place = i < kZygoteFdsMin
                              ? kLauncherControlFd + static_cast<int>(i)
                              : kLauncherCgroupFd + static_cast<int>(i - kZygoteFdsMin);
        if (::dup3(received.fds[i], place, O_CLOEXEC) < 0) {
            return errno;
        }
    }
    (void)::close(kLauncherNetworkFd);  // Ignored: there may be none.
    const auto above =
        static_cast<unsigned>(kLauncherCgroupFd + static_cast<int>(received.count - kZygoteFdsMin));
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

[[noreturn]] void become_launcher(Descriptors& received, WarmEntry entry) {
    if (const int error = place_descriptors(received); error != 0) {
        report_failed_fork(received.fds[0], error);
        ::_exit(kFailed);
    }
    ::_exit(launch_sandbox(entry));
}

}  // namespace

void serve_zygote(int control_fd, WarmEntry entry) noexcept {
    const ZygoteReady ready = describe_process();
    if (put_signals_aside() != 0 || send_message(control_fd, &ready, sizeof(ready), -1, 0) != 0 ||
        ready.threads != 1 || ready.open_files != 0 || ready.shared_mappings != 0) {
        ::_exit(kFailed);
    }
    while (true) {
        ZygoteRequest request;
        Descriptors received;
        const Received what = receive(control_fd, request, received);
        if (what == Received::kEnd) {
            ::_exit(0);
        }
        if (what == Received::kNothing) {
            continue;
        }
        // Not the C library's fork: that has no CLONE_PARENT. These forks start no threads and call
        // nothing of the program's.
        const auto pid = static_cast<pid_t>(
            ::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, 0));
        if (pid == 0) {
            become_launcher(received, entry);
        }
        if (pid < 0) {
            report_failed_fork(received.fds[0], errno);
        }
        close_all(received);
    }
}

}  // namespace cellkeep::sandbox
