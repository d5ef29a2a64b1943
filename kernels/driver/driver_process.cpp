// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/driver_process.hpp"

#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace cellkeep::kernels::driver {

namespace {

constexpr int kRequestsFd = 3;
constexpr int kEventsFd = 4;
constexpr std::size_t kReadBytes = 64UL << 10U;  // what a pipe holds
/// An empty buffer of up to this is kept for the next line.
constexpr std::size_t kBufferKeptBytes = 1UL << 20U;
/// Descriptors are moved up here first, so that none of them is overwritten by another's place.
constexpr int kSpareFd = 16;

/// What the child needs, made before the fork: between fork and exec nothing may allocate.
struct ChildPlan {
    std::vector<char*> argv;
    std::vector<char*> env;
    std::string program;
    int requests = -1;
    int events = -1;
    int failed = -1;  // errno goes here if exec fails
    pid_t parent = -1;
};

/// As execvp(3) looks for it, with the PATH that the driver will have.
std::string find_program(const std::string& name, const std::string& path) {
    if (name.find('/') != std::string::npos) {
        return name;
    }
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find(':', begin), path.size());
        std::string candidate = path.substr(begin, end - begin) + "/" + name;
        if (::access(candidate.c_str(), X_OK) == 0) {
            return candidate;
        }
        begin = end + 1;
    }
    return name;
}

std::vector<std::string> make_environment(const std::map<std::string, std::string>& own) {
    std::vector<std::string> env;
    for (char** entry = ::environ; *entry != nullptr; ++entry) {
        const std::string text(*entry);
        if (!own.contains(text.substr(0, text.find('=')))) {
            env.push_back(text);
        }
    }
    for (const auto& [name, value] : own) {
        env.push_back(name + "=" + value);
    }
    return env;
}

[[noreturn]] void fail_child(const ChildPlan& plan) {
    const int why = errno;
    // Ignored: it fails only if the parent is gone, and then there is no reader.
    (void)!::write(plan.failed, &why, sizeof(why));
    ::_exit(127);
}

[[noreturn]] void run_child(const ChildPlan& plan) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != plan.parent) {
        ::_exit(127);  // it died before it could be watched
    }
    for (const int number : {SIGINT, SIGPIPE}) {
        (void)std::signal(number, SIG_DFL);
    }
    sigset_t none{};
    (void)sigemptyset(&none);
    (void)::pthread_sigmask(SIG_SETMASK, &none, nullptr);
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || ::dup2(null, STDIN_FILENO) < 0 || ::dup2(plan.requests, kRequestsFd) < 0 ||
        ::dup2(plan.events, kEventsFd) < 0) {
        fail_child(plan);
    }
    (void)::execve(plan.program.c_str(), plan.argv.data(), plan.env.data());
    fail_child(plan);
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) {
        pointers.push_back(text.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

Result<UniqueFd> move_up(const UniqueFd& fd) {
    const int copy = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, kSpareFd);
    if (copy < 0) {
        return Error::from_errno(errno, "fcntl(driver pipe)");
    }
    return UniqueFd(copy);
}

/// Whether the child got as far as exec: the pipe closes by itself then.
Status wait_for_exec(int failed, const std::string& program) {
    int why = 0;
    ssize_t got = 0;
    while ((got = ::read(failed, &why, sizeof(why))) < 0 && errno == EINTR) {
    }
    if (got == 0) {
        return ok();
    }
    return Error(
        ErrorCode::kUnavailable,
        "start " + program + ": " + std::string(::strerrordesc_np(why == 0 ? EIO : why)));
}

}  // namespace

Result<DriverProcess> DriverProcess::start(const Command& command) {
    BOOST_OUTCOME_TRY(auto requests, make_pipe());
    BOOST_OUTCOME_TRY(auto events, make_pipe());
    BOOST_OUTCOME_TRY(auto failed, make_pipe());
    BOOST_OUTCOME_TRY(const UniqueFd requests_end, move_up(requests.read_end));
    BOOST_OUTCOME_TRY(const UniqueFd events_end, move_up(events.write_end));
    BOOST_OUTCOME_TRY(UniqueFd failed_end, move_up(failed.write_end));
    BOOST_OUTCOME_TRY(set_nonblocking(requests.write_end.get()));
    BOOST_OUTCOME_TRY(set_nonblocking(events.read_end.get()));

    std::vector<std::string> argv = command.argv;
    std::vector<std::string> env = make_environment(command.env);
    std::string path = "/usr/bin:/bin";
    for (const std::string& entry : env) {
        if (entry.starts_with("PATH=")) {
            path = entry.substr(std::strlen("PATH="));
        }
    }
    ChildPlan plan;
    plan.argv = pointers_to(argv);
    plan.env = pointers_to(env);
    plan.program = find_program(argv.front(), path);
    plan.requests = requests_end.get();
    plan.events = events_end.get();
    plan.failed = failed_end.get();
    plan.parent = ::getpid();

    const pid_t pid = ::fork();
    if (pid < 0) {
        return Error::from_errno(errno, "fork(driver)");
    }
    if (pid == 0) {
        run_child(plan);
    }
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    const int pidfd_errno = errno;
    DriverProcess process(
        pid, std::move(pidfd), std::move(requests.write_end), std::move(events.read_end));
    if (!process.pidfd_) {
        return Error::from_errno(pidfd_errno, "pidfd_open(driver)");
    }
    // Only the child has it now.
    failed.write_end = UniqueFd();
    failed_end = UniqueFd();
    BOOST_OUTCOME_TRY(wait_for_exec(failed.read_end.get(), command.argv.front()));
    return process;
}

DriverProcess::DriverProcess(pid_t pid, UniqueFd pidfd, UniqueFd requests, UniqueFd events)
    : pid_(pid),
      pidfd_(std::move(pidfd)),
      requests_(std::move(requests)),
      events_(std::move(events)) {}

DriverProcess::DriverProcess(DriverProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      requests_(std::move(other.requests_)),
      events_(std::move(other.events_)),
      unsent_(std::move(other.unsent_)),
      buffer_(std::move(other.buffer_)),
      taken_(other.taken_),
      searched_(other.searched_) {}

DriverProcess::~DriverProcess() {
    if (pid_ > 0) {
        kill();
        (void)reap();
    }
}

void DriverProcess::send(std::string_view line) {
    unsent_.append(line);
    unsent_.push_back('\n');
    send_more();
}

void DriverProcess::send_more() {
    std::size_t sent = 0;
    while (sent < unsent_.size()) {
        const ssize_t wrote =
            ::write(requests_.get(), unsent_.data() + sent, unsent_.size() - sent);
        if (wrote >= 0) {
            sent += static_cast<std::size_t>(wrote);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            sent = unsent_.size();  // the driver reads no more: its end is on the way
        }
    }
    unsent_.erase(0, sent);
}

Result<DriverProcess::Read> DriverProcess::read() {
    if (!events_) {
        return Read::kEnd;
    }
    buffer_.erase(0, std::exchange(taken_, 0));
    if (buffer_.empty() && buffer_.capacity() > kBufferKeptBytes) {
        buffer_ = {};
    }
    chunk_.resize(kReadBytes);
    ssize_t got = 0;
    while ((got = ::read(events_.get(), chunk_.data(), chunk_.size())) < 0) {
        if (errno == EAGAIN) {
            return Read::kNothing;
        }
        if (errno != EINTR) {
            return Error::from_errno(errno, "read(driver's events)");
        }
    }
    if (got == 0) {
        events_ = UniqueFd();
        return Read::kEnd;
    }
    const std::size_t before = buffer_.size();
    buffer_.append(chunk_.data(), static_cast<std::size_t>(got));
    const bool ends_line = buffer_.find('\n', before) != std::string::npos;
    if (!ends_line && buffer_.size() > kEventBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "a line of more than " + std::to_string(kEventBytesMax) + " bytes");
    }
    return Read::kSome;
}

std::size_t DriverProcess::available() const {
    int bytes = 0;
    if (!events_ || ::ioctl(events_.get(), FIONREAD, &bytes) < 0) {
        return 0;
    }
    return static_cast<std::size_t>(std::max(bytes, 0));
}

std::optional<std::string_view> DriverProcess::next_line() {
    const std::size_t end = buffer_.find('\n', taken_ + searched_);
    if (end == std::string::npos) {
        searched_ = buffer_.size() - taken_;
        return std::nullopt;
    }
    const std::string_view line(buffer_.data() + taken_, end - taken_);
    taken_ = end + 1;
    searched_ = 0;
    return line;
}

void DriverProcess::interrupt() const {
    (void)::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGINT, nullptr, 0);
}

void DriverProcess::kill() const {
    (void)::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
}

int DriverProcess::reap() {
    int status = 0;
    while (pid_ > 0 && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
}

void DriverProcess::end() {
    using Clock = std::chrono::steady_clock;
    requests_ = UniqueFd();
    const Clock::time_point deadline = Clock::now() + kEndGrace;
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        pollfd waits[]{{pidfd_.get(), POLLIN, 0}, {events_.get(), POLLIN, 0}};
        const int ready =
            ::poll(waits, 2, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
        if ((ready < 0 && errno != EINTR) || ready == 0) {
            kill();
            break;
        }
        if (waits[0].revents != 0) {
            break;
        }
        if (waits[1].revents != 0) {
            taken_ = buffer_.size();  // dropped: no request waits for it
            searched_ = 0;
            if (read().has_error()) {
                kill();
                break;
            }
        }
    }
    (void)reap();
}

}  // namespace cellkeep::kernels::driver
