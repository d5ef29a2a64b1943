// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/leftovers.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace cellkeep::sandbox {

namespace {

struct Kept {
    std::mutex mutex;
    std::deque<Leftover> leftovers;
};

Kept& kept() {
    static Kept all;
    return all;
}

/// True if the process is gone and reaped, or if a zygote's pid 1 is the one to reap it.
bool reap_now(const UniqueFd& pidfd) {
    pollfd process{pidfd.get(), POLLIN, 0};
    if (::poll(&process, 1, 0) != 1) {
        return false;
    }
    siginfo_t info{};  // zero, so that si_pid says whether there was anything (waitid(2))
    const int rc = ::waitid(P_PIDFD, static_cast<id_t>(pidfd.get()), &info, WEXITED | WNOHANG);
    return (rc == 0 && info.si_pid != 0) || (rc < 0 && errno == ECHILD);
}

bool clear(Leftover& leftover) {
    if (leftover.pidfd) {
        if (!reap_now(leftover.pidfd)) {
            return false;
        }
        leftover.pidfd.reset();
    }
    std::erase_if(leftover.directories, [](const std::string& path) {
        return remove_session_directory(path) == 0;
    });
    return leftover.directories.empty();
}

/// The end of a process wakes a wait. A directory gives no notice with cgroup v1: it is tried again
/// after this time.
constexpr std::chrono::milliseconds kLookAgain(20);

std::vector<pollfd> processes_left() {
    const std::lock_guard lock(kept().mutex);
    std::vector<pollfd> processes;
    for (const Leftover& leftover : kept().leftovers) {
        if (leftover.pidfd) {
            processes.push_back({leftover.pidfd.get(), POLLIN, 0});
        }
    }
    return processes;
}

}  // namespace

int remove_session_directory(const std::string& path) {
    if (::rmdir(path.c_str()) < 0 && errno != ENOENT) {
        return errno;
    }
    // Ignored: the server's directory goes with its last session.
    (void)::rmdir(path.substr(0, path.rfind('/')).c_str());
    return 0;
}

void leave_behind(Leftover leftover) {
    if (!leftover.pidfd && leftover.directories.empty()) {
        return;
    }
    const std::lock_guard lock(kept().mutex);
    if (kept().leftovers.size() >= kLeftoversMax) {
        kept().leftovers.pop_front();
    }
    kept().leftovers.push_back(std::move(leftover));
}

std::size_t clear_leftovers() {
    const std::lock_guard lock(kept().mutex);
    std::erase_if(kept().leftovers, clear);
    return kept().leftovers.size();
}

std::size_t wait_for_leftovers(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    std::size_t left = clear_leftovers();
    while (left > 0 && std::chrono::steady_clock::now() < deadline) {
        std::vector<pollfd> processes = processes_left();
        // Ignored: the look that follows is the judge.
        (void)::poll(processes.data(), processes.size(), static_cast<int>(kLookAgain.count()));
        left = clear_leftovers();
    }
    return left;
}

}  // namespace cellkeep::sandbox
