// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/process/supervisor.hpp"

#include "kernels/cpp/process/channel.hpp"
#include "kernels/cpp/process/deaths.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::cpp {

namespace {

using Clock = std::chrono::steady_clock;

/// How long a cell may take to heed SIGINT (code of its own may handle it) before it is killed.
constexpr std::chrono::milliseconds kInterruptGrace{1000};
/// How long destructors may take at the end; the kernel kills after two seconds.
constexpr std::chrono::milliseconds kEndGrace{1500};
constexpr std::size_t kSupervisorReadBytes = 65536;

class Supervisor {
 public:
    explicit Supervisor(SupervisorParts parts)
        : parts_(std::move(parts)), interpreter_(parts_.interpreter) {}

    int run() {
        while (!exit_code_) {
            turn();
        }
        return *exit_code_;
    }

 private:
    void turn() {
        std::array<pollfd, 3> watched{
            pollfd{ending_ ? -1 : parts_.requests.get(), POLLIN, 0},
            pollfd{parts_.channel.get(), POLLIN, 0},
            pollfd{parts_.signals.get(), POLLIN, 0}};
        if (::poll(watched.data(), watched.size(), milliseconds_left()) < 0 && errno != EINTR) {
            exit_code_ = 1;
            return;
        }
        // What the interpreter said before anything that could end it.
        drain_channel();
        if (watched[2].revents != 0) {
            take_signals();
        }
        if (!ending_ && watched[0].revents != 0) {
            take_requests();
        }
        if (kill_at_ && Clock::now() >= *kill_at_) {
            kill_at_.reset();
            kill_interpreter();
        }
    }

    int milliseconds_left() const {
        if (!kill_at_) {
            return -1;
        }
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - Clock::now()).count();
        return static_cast<int>(std::max<std::int64_t>(left, 0));
    }

    void take_requests() {
        std::array<char, kSupervisorReadBytes> bytes;
        const ssize_t count = ::read(parts_.requests.get(), bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) {
            return;
        }
        if (count <= 0) {
            begin_end();
            return;
        }
        requests_.append(bytes.data(), static_cast<std::size_t>(count));
        std::size_t begin = 0;
        for (std::size_t end = requests_.find('\n'); end != std::string::npos;
             end = requests_.find('\n', begin)) {
            pass_on(std::string_view(requests_).substr(begin, end + 1 - begin));
            begin = end + 1;
        }
        requests_.erase(0, begin);
    }

    void pass_on(std::string_view line) {
        const auto request = nlohmann::json::parse(line, nullptr, false);
        if (request.is_object() && request.value("request", "") == "execute") {
            running_ = request.value("id", std::uint64_t{0});
            interrupted_ = false;
            stack_overflow_ = false;
            line_ = 0;
            announced_ = false;
        }
        // A reader that is gone shows as its death.
        (void)write_fully(parts_.channel.get(), line);
    }

    /// The kernel has hung up: the interpreter sees its own end of file and tidies up.
    void begin_end() {
        ending_ = true;
        (void)::shutdown(parts_.channel.get(), SHUT_WR);
        kill_at_ = Clock::now() + kEndGrace;
    }

    void drain_channel() {
        std::array<char, kSupervisorReadBytes> bytes;
        for (;;) {
            const ssize_t count =
                ::recv(parts_.channel.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
            if (count < 0 && errno == EINTR) {
                continue;
            }
            if (count <= 0) {
                return;
            }
            said_.append(bytes.data(), static_cast<std::size_t>(count));
            std::size_t begin = 0;
            for (std::size_t end = said_.find('\n'); end != std::string::npos;
                 end = said_.find('\n', begin)) {
                take_word(std::string_view(said_).substr(begin, end + 1 - begin));
                begin = end + 1;
            }
            said_.erase(0, begin);
            if (said_.size() > kLineBytesMax) {
                said_.clear();
                kill_interpreter();
            }
        }
    }

    /// line: with its newline.
    void take_word(std::string_view line) {
        const std::string_view text = line.substr(1);
        switch (static_cast<Word>(line.front())) {
            case Word::kEvent:
                (void)write_fully(parts_.events.get(), text);
                return;
            case Word::kDone:
                finish(text);
                return;
            case Word::kFailed:
                report_ = std::string(text);
                return;
            case Word::kAgain:
                again_ = std::string(text.substr(0, text.size() - 1));
                return;
            case Word::kLine:
                (void)std::from_chars(text.data(), text.data() + text.size(), line_);
                return;
            case Word::kOverflow:
                stack_overflow_ = true;
                return;
            case Word::kFallback: {
                const char* end = text.data() + text.size();
                const auto [rest, error] = std::from_chars(text.data(), end, fallback_);
                threads_ = 0;
                if (error == std::errc() && rest != end) {
                    (void)std::from_chars(rest + 1, end, threads_);
                }
                announced_ = true;
                if (interrupted_) {
                    interrupt();
                }
                return;
            }
        }
    }

    /// The request is answered; the copy from before it is not needed any more.
    void finish(std::string_view event) {
        (void)write_fully(parts_.events.get(), event);
        running_.reset();
        report_.reset();
        if (!ending_) {
            kill_at_.reset();
        }
        if (fallback_ > 0) {
            dying_.push_back(fallback_);
            (void)::kill(std::exchange(fallback_, -1), SIGKILL);
        }
    }

    /// All copies read the same pipe. One that was killed and has not run since would take what is
    /// meant for another.
    void bury_copies() {
        for (const pid_t copy : std::exchange(dying_, {})) {
            // ECHILD: it is reaped already.
            while (::waitpid(copy, nullptr, 0) < 0 && errno == EINTR) {
            }
        }
    }

    void take_signals() {
        signalfd_siginfo info{};
        bool child = false;
        while (::read(parts_.signals.get(), &info, sizeof(info)) ==
               static_cast<ssize_t>(sizeof(info))) {
            child = child || info.ssi_signo == SIGCHLD;
            if (info.ssi_signo == SIGINT && running_) {
                interrupted_ = true;
                if (announced_) {
                    interrupt();
                }
            }
        }
        if (child) {
            reap();
        }
    }

    /// Not before there is something to go back to.
    void interrupt() {
        (void)::kill(interpreter_, SIGINT);
        kill_at_ = Clock::now() + kInterruptGrace;
    }

    void kill_interpreter() const { (void)::kill(interpreter_, SIGKILL); }

    /// Our own, and what cells left behind: they come to us when their parents end.
    void reap() {
        int status = 0;
        for (pid_t ended = ::waitpid(-1, &status, WNOHANG); ended > 0;
             ended = ::waitpid(-1, &status, WNOHANG)) {
            if (ended == fallback_) {
                fallback_ = -1;
            }
            std::erase(dying_, ended);
            if (ended == interpreter_) {
                interpreter_ended(status);
            }
        }
    }

    void interpreter_ended(int status) {
        drain_channel();
        said_.clear();  // half a line
        if (ending_ || fallback_ <= 0 || !running_) {
            give_up(status);
            return;
        }
        interpreter_ = std::exchange(fallback_, -1);
        announced_ = false;
        bury_copies();
        const std::string why = again_ && !interrupted_ ? *again_ : std::string();
        (void)write_fully(parts_.wake.get(), why + "\n");
        if (!std::exchange(again_, std::nullopt) || interrupted_) {
            const CellDeath death{status, interrupted_, stack_overflow_, line_, threads_};
            finish(
                report_ && !interrupted_ ? std::string(*report_)
                                         : death_event(*running_, death).dump() + "\n");
        }
    }

    /// The state is gone, or is wanted no more.
    void give_up(int status) {
        if (fallback_ > 0) {
            (void)::kill(fallback_, SIGKILL);
        }
        if (ending_) {
            exit_code_ = 0;
        } else if (WIFSIGNALED(status)) {
            // The server tells the reason of a death from how its process ended.
            (void)::signal(WTERMSIG(status), SIG_DFL);
            sigset_t all;
            ::sigemptyset(&all);
            (void)::pthread_sigmask(SIG_SETMASK, &all, nullptr);
            (void)::kill(::getpid(), WTERMSIG(status));
            exit_code_ = 128 + WTERMSIG(status);
        } else {
            exit_code_ = WEXITSTATUS(status);
        }
    }

    SupervisorParts parts_;
    pid_t interpreter_;
    pid_t fallback_ = -1;
    std::vector<pid_t> dying_;  // copies that were killed
    bool announced_ = false;    // the interpreter has said what its fallback is, for this cell
    std::size_t threads_ = 0;   // that the interpreter has and the fallback has not
    std::optional<std::uint64_t> running_;
    bool interrupted_ = false;
    bool stack_overflow_ = false;
    unsigned line_ = 0;
    bool ending_ = false;
    std::optional<std::string> report_;
    std::optional<std::string> again_;
    std::optional<Clock::time_point> kill_at_;
    std::optional<int> exit_code_;
    std::string requests_;
    std::string said_;
};

}  // namespace

int supervise(SupervisorParts parts) {
    return Supervisor(std::move(parts)).run();
}

}  // namespace cellkeep::cpp
