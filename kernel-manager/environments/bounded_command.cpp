// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/bounded_command.hpp"

#include "protocol/support/syscall.hpp"
#include "protocol/support/unique_fd.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stop_token>
#include <system_error>
#include <utility>

namespace cellkeep::environments {

namespace fs = std::filesystem;

namespace {

constexpr int kFirstUnwanted = 3;
constexpr const char* kSaid = "said.log";
/// How often the disk space is measured.
constexpr std::chrono::milliseconds kLook{500};

std::vector<char*> as_pointers(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

/// What the program writes to: its stdout, and its stderr.
struct Outputs {
    int normal = -1;
    int errors = -1;
};

int add_actions(
    posix_spawn_file_actions_t& actions, const BoundedCommand& command, const Outputs& outputs) {
    int failed = ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    for (const auto& [fd, target] : {std::pair(outputs.normal, 1), std::pair(outputs.errors, 2)}) {
        failed = failed != 0 ? failed : ::posix_spawn_file_actions_adddup2(&actions, fd, target);
    }
    failed =
        failed != 0 ? failed : ::posix_spawn_file_actions_addclosefrom_np(&actions, kFirstUnwanted);
    return failed != 0
               ? failed
               : ::posix_spawn_file_actions_addchdir_np(
                     &actions,
                     (command.runs_in.empty() ? command.directory : command.runs_in).c_str());
}

/// What this thread holds back or the server ignores is no business of the program's.
int add_signals(posix_spawnattr_t& attributes) {
    sigset_t none;
    sigset_t all;
    // Ignored: neither fails on a valid set (sigsetops(3)).
    (void)::sigemptyset(&none);
    (void)::sigfillset(&all);
    int failed = ::posix_spawnattr_setsigmask(&attributes, &none);
    failed = failed != 0 ? failed : ::posix_spawnattr_setsigdefault(&attributes, &all);
    return failed != 0 ? failed
                       : ::posix_spawnattr_setflags(
                             &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

Result<pid_t> spawn(const BoundedCommand& command, const Outputs& outputs) {
    std::vector<std::string> words = command.argv;
    std::vector<std::string> variables = command.environment;
    posix_spawn_file_actions_t actions;
    int failed = ::posix_spawn_file_actions_init(&actions);
    if (failed != 0) {
        return Error::from_errno(failed, "posix_spawn_file_actions_init");
    }
    posix_spawnattr_t attributes;
    failed = ::posix_spawnattr_init(&attributes);
    if (failed != 0) {
        (void)::posix_spawn_file_actions_destroy(&actions);  // Ignored: cannot fail.
        return Error::from_errno(failed, "posix_spawnattr_init");
    }
    pid_t pid = -1;
    failed = add_actions(actions, command, outputs);
    failed = failed != 0 ? failed : add_signals(attributes);
    if (failed == 0) {
        failed = ::posix_spawn(
            &pid,
            command.argv[0].c_str(),
            &actions,
            &attributes,
            as_pointers(words).data(),
            as_pointers(variables).data());
    }
    (void)::posix_spawn_file_actions_destroy(&actions);  // Ignored: cannot fail.
    (void)::posix_spawnattr_destroy(&attributes);        // Ignored: cannot fail.
    if (failed != 0) {
        return Error::from_errno(failed, "spawn(" + command.argv[0] + ")");
    }
    return pid;
}

/// Whether it has ended before the time was over.
Result<bool> wait_for(int process, std::chrono::milliseconds time) {
    pollfd one{process, POLLIN, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(time.count(), 0)));
    if (ready < 0 && errno != EINTR) {
        return Error::from_errno(errno, "poll(process)");
    }
    return ready > 0;
}

/// Until the program has ended.
Status watch(const BoundedCommand& command, int process) {
    using std::chrono::steady_clock;
    // The wait below sees its end.
    const std::stop_callback kill_it(command.stop, [process] {
        // Ignored: it has ended by itself.
        (void)::syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0);
    });
    while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            command.deadline - steady_clock::now());
        BOOST_OUTCOME_TRY(const bool ended, wait_for(process, std::min(left, kLook)));
        if (command.stop.stop_requested()) {
            return Error(ErrorCode::kCancelled, "its caller has stopped it");
        }
        if (ended) {
            return ok();
        }
        if (steady_clock::now() >= command.deadline) {
            return Error(ErrorCode::kTimeout, "it took longer than it may");
        }
        if (bytes_beneath(command.directory) > command.bytes_max) {
            return Error(
                ErrorCode::kLimitExceeded,
                "it takes more than " + std::to_string(command.bytes_max >> 20U) +
                    " MiB of disk space");
        }
    }
}

/// Empty if it cannot be read.
std::string end_of(int fd) {
    struct stat info {};
    if (::fstat(fd, &info) < 0) {
        return {};
    }
    std::string text(kSaidBytesMax, '\0');
    const auto begin = std::max<off_t>(0, info.st_size - static_cast<off_t>(text.size()));
    const ssize_t got = ::pread(fd, text.data(), text.size(), begin);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
}

}  // namespace

Result<CommandEnd> run_bounded(const BoundedCommand& command) {
    BOOST_OUTCOME_TRY(
        const UniqueFd output,
        open_file(
            command.directory + "/" + kSaid,
            O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW,
            S_IRUSR | S_IWUSR));
    UniqueFd file;
    if (!command.output.empty()) {
        BOOST_OUTCOME_TRY(
            file,
            open_file(
                command.output, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    }
    const Outputs outputs{file ? file.get() : output.get(), output.get()};
    BOOST_OUTCOME_TRY(const pid_t pid, spawn(command, outputs));
    // The pid cannot be another's yet: we have not waited for it.
    const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    const Status watched =
        process ? watch(command, process.get()) : Error::from_errno(errno, "pidfd_open");
    if (watched.has_error()) {
        (void)::kill(pid, SIGKILL);  // Ignored: it has ended meanwhile, or will.
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return Error::from_errno(errno, "waitpid(" + command.argv[0] + ")");
        }
    }
    (void)::unlink((command.directory + "/" + kSaid).c_str());  // Ignored: it is ours alone.
    BOOST_OUTCOME_TRY(watched);
    return CommandEnd{WIFEXITED(status) && WEXITSTATUS(status) == 0, end_of(output.get())};
}

std::uint64_t bytes_beneath(const std::string& directory) {
    std::uint64_t bytes = 0;
    std::error_code error;
    fs::recursive_directory_iterator at(
        directory, fs::directory_options::skip_permission_denied, error);
    for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
        struct stat info {};
        // What has gone meanwhile takes nothing.
        if (::lstat(at->path().c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
            bytes += static_cast<std::uint64_t>(info.st_size);
        }
    }
    return bytes;
}

}  // namespace cellkeep::environments
