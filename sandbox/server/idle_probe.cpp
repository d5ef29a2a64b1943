// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/idle_probe.hpp"

#include "protocol/support/syscall.hpp"

#include <dirent.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>

namespace cellkeep::sandbox {

namespace {

constexpr std::size_t kTaskFileBytesMax = 1UL << 16U;
/// The number and six arguments; the stack and instruction pointers come behind.
constexpr std::size_t kNumbers = 7;

/// How a system call that may wait says for how long.
enum class Limit {
    kNone,          // it cannot
    kMilliseconds,  // an int: negative is for ever
    kPointer,       // to a struct: null is for ever
    kFutex,         // a pointer, of the operations that wait
};

struct Wait {
    long number;
    Limit limit;
    std::size_t argument;  // from 1
};

/// Those that only exist on some architectures are left out where they do not.
constexpr auto kWaits = std::to_array<Wait>({
    {SYS_futex, Limit::kFutex, 4},
    {SYS_epoll_pwait, Limit::kMilliseconds, 4},
    {SYS_ppoll, Limit::kPointer, 3},
    {SYS_pselect6, Limit::kPointer, 5},
    {SYS_rt_sigtimedwait, Limit::kPointer, 3},
    {SYS_read, Limit::kNone, 0},
    {SYS_readv, Limit::kNone, 0},
    {SYS_recvfrom, Limit::kNone, 0},
    {SYS_recvmsg, Limit::kNone, 0},
    {SYS_accept, Limit::kNone, 0},
    {SYS_accept4, Limit::kNone, 0},
    {SYS_wait4, Limit::kNone, 0},
    {SYS_waitid, Limit::kNone, 0},
    {SYS_rt_sigsuspend, Limit::kNone, 0},
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, Limit::kPointer, 4},
#endif
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, Limit::kMilliseconds, 4},
#endif
#ifdef SYS_poll
    {SYS_poll, Limit::kMilliseconds, 3},
#endif
#ifdef SYS_select
    {SYS_select, Limit::kPointer, 5},
#endif
#ifdef SYS_pause
    {SYS_pause, Limit::kNone, 0},
#endif
});

bool is_waiting_futex(std::uint64_t operation) {
    switch (operation & static_cast<std::uint64_t>(FUTEX_CMD_MASK)) {
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET:
        case FUTEX_LOCK_PI:
        case FUTEX_WAIT_REQUEUE_PI:
            return true;
        default:
            return false;
    }
}

std::optional<std::array<std::uint64_t, kNumbers>> parse_numbers(std::string_view line) {
    std::array<std::uint64_t, kNumbers> numbers{};
    for (std::size_t i = 0; i < kNumbers; ++i) {
        const bool hexadecimal = i > 0;
        if (hexadecimal && !line.starts_with(" 0x")) {
            return std::nullopt;  // "running", or "-1 SP PC" of a thread in no system call
        }
        line.remove_prefix(hexadecimal ? 3 : 0);
        const auto read = std::from_chars(
            line.data(), line.data() + line.size(), numbers[i], hexadecimal ? 16 : 10);
        if (read.ec != std::errc()) {
            return std::nullopt;
        }
        line.remove_prefix(static_cast<std::size_t>(read.ptr - line.data()));
    }
    return numbers;
}

struct CloseDirectory {
    void operator()(DIR* directory) const { (void)::closedir(directory); }
};

/// Gone while we look: something happens in there.
bool is_gone(const Error& error) {
    return error.errno_value() == ENOENT || error.errno_value() == ESRCH;
}

/// Counts the process's threads into `threads`.
Result<bool> process_waits(const std::string& pid, std::size_t& threads) {
    const std::string tasks = "/proc/" + pid + "/task";
    const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(tasks.c_str()));
    if (!directory) {
        const Error error = Error::from_errno(errno, "opendir(" + tasks + ")");
        return is_gone(error) ? Result<bool>(false) : Result<bool>(error);
    }
    while (const dirent* entry = ::readdir(directory.get())) {  // NOLINT(concurrency-mt-unsafe)
        const std::string_view name = entry->d_name;
        if (name.starts_with('.')) {
            continue;
        }
        if (++threads > kRestThreadsMax) {
            return false;
        }
        const auto line =
            read_file(tasks + "/" + std::string(name) + "/syscall", kTaskFileBytesMax);
        if (line.has_error()) {
            return is_gone(line.error()) ? Result<bool>(false) : Result<bool>(line.error());
        }
        if (!waits_without_limit(line.value())) {
            return false;
        }
    }
    return true;
}

}  // namespace

bool waits_without_limit(std::string_view line) {
    const auto numbers = parse_numbers(line);
    if (!numbers.has_value()) {
        return false;
    }
    for (const Wait& wait : kWaits) {
        if ((*numbers)[0] != static_cast<std::uint64_t>(wait.number)) {
            continue;
        }
        const std::uint64_t value = (*numbers)[wait.argument];
        switch (wait.limit) {
            case Limit::kNone:
                return true;
            case Limit::kMilliseconds:
                return static_cast<std::int32_t>(value) < 0;
            case Limit::kPointer:
                return value == 0;
            case Limit::kFutex:
                return value == 0 && is_waiting_futex((*numbers)[2]);
        }
    }
    return false;
}

Result<bool> all_wait_without_limit(const std::vector<std::string>& procs_files, pid_t pid1) {
    const std::string ours = std::to_string(pid1);
    std::size_t threads = 0;
    for (const std::string& file : procs_files) {
        BOOST_OUTCOME_TRY(const std::string text, read_file(file, kTaskFileBytesMax));
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            const std::string pid = text.substr(begin, end - begin);
            begin = end + 1;
            if (pid == ours) {
                continue;
            }
            BOOST_OUTCOME_TRY(const bool waits, process_waits(pid, threads));
            if (!waits) {
                return false;
            }
        }
    }
    return true;
}

Result<pid_t> pid_of(int pidfd) {
    constexpr std::string_view kField = "\nPid:";
    BOOST_OUTCOME_TRY(
        const std::string text,
        read_file("/proc/self/fdinfo/" + std::to_string(pidfd), kTaskFileBytesMax));
    const std::size_t found = text.find(kField);
    pid_t pid = -1;
    if (found != std::string::npos) {
        const std::size_t number = text.find_first_not_of(" \t", found + kField.size());
        if (number != std::string::npos) {
            (void)std::from_chars(text.data() + number, text.data() + text.size(), pid);
        }
    }
    if (pid <= 0) {
        return Error(ErrorCode::kUnavailable, "pidfd: its process has ended");
    }
    return pid;
}

}  // namespace cellkeep::sandbox
