// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/process/run_in_child.hpp"

#include "kernels/cpp/process/channel.hpp"
#include "protocol/support/unique_fd.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>

namespace cellkeep::cpp {

namespace {

/// Of this process; 0 if /proc/self/statm (proc_pid_statm(5)) cannot be read. Does not allocate.
std::size_t address_space_bytes() {
    std::array<char, 128> text{};
    const UniqueFd file(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
    const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : 0;
    std::size_t pages = 0;
    if (got > 0) {
        (void)std::from_chars(text.data(), text.data() + got, pages);
    }
    return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void limit_child() {
    rlimit processor{};
    if (::getrlimit(RLIMIT_CPU, &processor) == 0) {
        rusage used{};
        (void)::getrusage(RUSAGE_SELF, &used);
        processor.rlim_cur = static_cast<rlim_t>(used.ru_utime.tv_sec) + kChildSecondsMax;
        (void)::setrlimit(RLIMIT_CPU, &processor);
    }
    rlimit memory{};
    const std::size_t present = address_space_bytes();
    if (present > 0 && ::getrlimit(RLIMIT_AS, &memory) == 0) {
        memory.rlim_cur = std::min<rlim_t>(present + kChildBytesMax, memory.rlim_max);
        (void)::setrlimit(RLIMIT_AS, &memory);
    }
}

[[noreturn]] void work_in_child(
    const std::function<std::string()>& work, pid_t parent, int result) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        ::_exit(1);
    }
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP, SIGINT}) {
        (void)::signal(signal, SIG_DFL);
    }
    limit_child();
    const std::string found = work();
    ::_exit(write_fully(result, found) ? 0 : 1);
}

/// While it lives, a child that ends is there to be waited for, whatever a cell does with SIGCHLD.
class OwnChildren {
 public:
    OwnChildren() {
        struct sigaction usual {};
        usual.sa_handler = SIG_DFL;
        (void)::sigaction(SIGCHLD, &usual, &before_);
    }
    ~OwnChildren() { (void)::sigaction(SIGCHLD, &before_, nullptr); }
    OwnChildren(const OwnChildren&) = delete;
    OwnChildren& operator=(const OwnChildren&) = delete;

 private:
    struct sigaction before_ {};
};

}  // namespace

std::optional<std::string> run_in_child(const std::function<std::string()>& work) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return std::nullopt;
    }
    const UniqueFd read_end(ends[0]);
    UniqueFd write_end(ends[1]);
    const OwnChildren waited_for;
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
        work_in_child(work, parent, write_end.get());
    }
    write_end.reset();
    std::string found;
    std::array<char, 65536> bytes;
    for (;;) {
        const ssize_t count = child < 0 ? 0 : ::read(read_end.get(), bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        found.append(bytes.data(), static_cast<std::size_t>(count));
    }
    int status = -1;
    while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) {
        return std::nullopt;
    }
    return found;
}

}  // namespace cellkeep::cpp
