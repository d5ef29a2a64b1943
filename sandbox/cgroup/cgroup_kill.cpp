// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/cgroup_kill.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::sandbox {

namespace {

/// Far more than a session may have.
constexpr std::size_t kListBytesMax = 1U << 20U;
/// As many descriptors of processes are open at once.
constexpr std::size_t kHeldAtOnce = 64;

/// In ascending order. What cannot be read is empty: cgroup.kill has done what can be done then.
std::vector<pid_t> read_numbers(const UniqueFd& procs) {
    std::string text;
    std::array<char, 4096> part{};
    ssize_t got = 0;
    do {
        got = ::pread(procs.get(), part.data(), part.size(), static_cast<off_t>(text.size()));
        text.append(part.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    } while (got > 0 && text.size() < kListBytesMax);
    std::vector<pid_t> numbers;
    std::istringstream in(text);
    for (pid_t number = 0; in >> number;) {
        numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

struct Listed {
    pid_t number = 0;
    UniqueFd pidfd;
};

/// A number that is in the list when its descriptor is open is that process's, or of one that came
/// after it: then the descriptor is of none.
void kill_if_still_listed(std::vector<Listed>& held, const UniqueFd& procs) {
    const std::vector<pid_t> still = read_numbers(procs);
    for (const Listed& one : held) {
        if (std::binary_search(still.begin(), still.end(), one.number)) {
            // Ignored: ESRCH means that it has ended.
            (void)::syscall(SYS_pidfd_send_signal, one.pidfd.get(), SIGKILL, nullptr, 0);
        }
    }
    held.clear();
}

Status write_kill(const UniqueFd& kill) {
    if (::pwrite(kill.get(), "1", 1, 0) != 1) {
        return Error::from_errno(errno, "write(cgroup.kill)");
    }
    return ok();
}

}  // namespace

Status kill_processes(const UniqueFd& kill, const UniqueFd& procs) {
    BOOST_OUTCOME_TRY(write_kill(kill));
    std::vector<Listed> held;
    for (const pid_t number : read_numbers(procs)) {
        UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, number, 0)));
        if (number > 1 && pidfd) {
            held.push_back({number, std::move(pidfd)});
        }
        if (held.size() == kHeldAtOnce) {
            kill_if_still_listed(held, procs);
        }
    }
    kill_if_still_listed(held, procs);
    return write_kill(kill);  // what those have forked until then
}

}  // namespace cellkeep::sandbox
