// SPDX-License-Identifier: Apache-2.0
#include "sandbox/inside/zygote_loop.hpp"

#include "sandbox/inside/init_socket.hpp"
#include "sandbox/inside/launch_request.hpp"
#include "sandbox/inside/signal_table.hpp"
#include "sandbox/shared/messages.hpp"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace cellkeep::sandbox {

namespace {

constexpr int kFailed = 70;

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

}  // namespace

void serve_zygote(int control_fd, WarmEntry entry) noexcept {
    const ZygoteReady ready = describe_process();
    if (put_signals_aside() != 0 || send_message(control_fd, &ready, sizeof(ready), -1, 0) != 0 ||
        ready.threads != 1 || ready.open_files != 0 || ready.shared_mappings != 0) {
        ::_exit(kFailed);
    }
    while (true) {
        LaunchDescriptors received;
        if (!receive_launch(control_fd, received)) {
            ::_exit(0);
        }
        // Not the C library's fork: that has no CLONE_PARENT. These forks start no threads and call
        // nothing of the program's.
        const auto pid = static_cast<pid_t>(
            ::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, 0));
        if (pid == 0) {
            become_launcher(received, entry);
        }
        end_request(received, pid < 0 ? errno : 0);
    }
}

}  // namespace cellkeep::sandbox
