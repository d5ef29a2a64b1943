// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/branch_place.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/server/idle_probe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <string_view>
#include <utility>

namespace cellkeep::sandbox {

namespace {

constexpr std::size_t kStatusBytesMax = 64UL * 1024;
constexpr std::size_t kProcsBytesMax = 1UL << 20U;
/// How often all that is in a cgroup is killed, with a millisecond between.
constexpr int kKillRounds = 500;

Error unavailable(const Error& why) {
    return {ErrorCode::kUnavailable, "branch: " + why.message()};
}

/// What stands behind the name and its colon in a text like proc_pid_status(5).
Result<std::string> find_line(const std::string& text, std::string_view name) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
            return line.substr(name.size() + 1);
        }
    }
    return Error(
        ErrorCode::kUnavailable, "branch: /proc has no line " + std::string(name) + " of it");
}

Result<std::string> proc_directory(const UniqueFd& pidfd) {
    const auto pid = pid_of(pidfd.get());
    if (pid.has_error()) {
        return unavailable(pid.error());
    }
    return "/proc/" + std::to_string(pid.value());
}

}  // namespace

Result<BranchPlace> find_place(const UniqueFd& pidfd) {
    BOOST_OUTCOME_TRY(const std::string proc, proc_directory(pidfd));
    BranchPlace place;
    for (const auto& [fd, name] :
         {std::pair{&place.mount, "mnt"}, {&place.pid, "pid"}, {&place.user, "user"}}) {
        const std::string path = proc + "/ns/" + name;
        *fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!*fd) {
            return unavailable(Error::from_errno(errno, "open(" + path + ")"));
        }
    }
    // Its number is no other's as long as the handle says that it lives.
    if (const auto still = proc_directory(pidfd); still.has_error() || still.value() != proc) {
        return Error(ErrorCode::kUnavailable, "branch: the checkpoint's process is gone");
    }
    return place;
}

Result<std::vector<pid_t>> numbers_of(const UniqueFd& pidfd) {
    const std::string path = "/proc/self/fdinfo/" + std::to_string(pidfd.get());
    BOOST_OUTCOME_TRY(const std::string text, read_file(path, kStatusBytesMax));
    BOOST_OUTCOME_TRY(const std::string line, find_line(text, "NSpid"));
    std::istringstream in(line);
    std::vector<pid_t> numbers;
    for (pid_t number = 0; in >> number;) {
        numbers.push_back(number);
    }
    return numbers;
}

Status check_powerless(const UniqueFd& pidfd) {
    BOOST_OUTCOME_TRY(const std::string proc, proc_directory(pidfd));
    BOOST_OUTCOME_TRY(const std::string status, read_file(proc + "/status", kStatusBytesMax));
    for (const char* name : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
        BOOST_OUTCOME_TRY(const std::string set, find_line(status, name));
        if (set.find_first_not_of(" \t0") != std::string::npos) {
            return Error(
                ErrorCode::kPermissionDenied,
                "branch: the process has kept capabilities (" + std::string(name) + ")");
        }
    }
    BOOST_OUTCOME_TRY(const std::string filter, find_line(status, "Seccomp"));
    if (filter.find('2') == std::string::npos) {
        return Error(ErrorCode::kPermissionDenied, "branch: the process has no filter");
    }
    return ok();
}

Status move_to_cgroups(const UniqueFd& pidfd, const std::vector<std::string>& files) {
    BOOST_OUTCOME_TRY(const pid_t pid, pid_of(pidfd.get()));
    for (const std::string& path : files) {
        const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        if (!file) {
            return Error::from_errno(errno, "open(" + path + ")");
        }
        BOOST_OUTCOME_TRY(write_all(file.get(), std::to_string(pid)));
    }
    return ok();
}

Status kill_all_but(const std::vector<std::string>& files, const UniqueFd& spared) {
    BOOST_OUTCOME_TRY(const pid_t kept, pid_of(spared.get()));
    for (int round = 0; round < kKillRounds; ++round) {
        bool alone = true;
        for (const std::string& path : files) {
            BOOST_OUTCOME_TRY(const std::string text, read_file(path, kProcsBytesMax));
            std::istringstream in(text);
            for (pid_t pid = 0; in >> pid;) {
                if (pid > 1 && pid != kept) {
                    alone = false;
                    (void)::kill(pid, SIGKILL);  // Ignored: ESRCH means that it has ended.
                }
            }
        }
        if (alone) {
            return ok();
        }
        (void)::poll(nullptr, 0, 1);  // Ignored: it only waits.
    }
    return Error(ErrorCode::kTimeout, "the processes of the session do not end");
}

}  // namespace cellkeep::sandbox
