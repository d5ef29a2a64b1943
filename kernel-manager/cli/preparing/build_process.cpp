// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/preparing/build_process.hpp"

#include "protocol/support/unique_fd.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

constexpr int kFirstOtherDescriptor = 3;
constexpr const char* kProgramName = "cellkeep";  // what a list of processes shows

/// The arguments of posix_spawn(3) for the descriptors and the session of the new process.
class SpawnSettings {
 public:
    SpawnSettings() {
        if (::posix_spawn_file_actions_init(&actions_) != 0) {
            return;
        }
        if (::posix_spawnattr_init(&attributes_) != 0) {
            (void)::posix_spawn_file_actions_destroy(&actions_);  // Ignored: cannot fail.
            return;
        }
        made_ = true;
    }
    SpawnSettings(const SpawnSettings&) = delete;
    SpawnSettings& operator=(const SpawnSettings&) = delete;
    ~SpawnSettings() {
        if (made_) {
            (void)::posix_spawn_file_actions_destroy(&actions_);  // Ignored: cannot fail.
            (void)::posix_spawnattr_destroy(&attributes_);        // Ignored: cannot fail.
        }
    }

    /// Returns an error number, or 0. The new process gets none of our descriptors: a program that
    /// waits until one of them closes (--ready-fd, a Jupyter program's pipe) does not wait for it.
    int detach(int errors) {
        if (!made_) {
            return ENOMEM;
        }
        int failed = ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
        failed = failed != 0
                     ? failed
                     : ::posix_spawn_file_actions_addopen(&actions_, 1, "/dev/null", O_WRONLY, 0);
        failed = failed != 0 ? failed : ::posix_spawn_file_actions_adddup2(&actions_, errors, 2);
        failed = failed != 0
                     ? failed
                     : ::posix_spawn_file_actions_addclosefrom_np(&actions_, kFirstOtherDescriptor);
        return failed != 0 ? failed : ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID);
    }
    const posix_spawn_file_actions_t* actions() const { return &actions_; }
    const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
    bool made_ = false;
};

Result<pid_t> spawn_detached(
    const std::string& program, const std::vector<std::string>& arguments, int errors) {
    std::vector<std::string> words{kProgramName};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    SpawnSettings settings;
    int failed = settings.detach(errors);
    pid_t pid = -1;
    if (failed == 0) {
        failed = ::posix_spawn(
            &pid, program.c_str(), settings.actions(), settings.attributes(), argv.data(), environ);
    }
    if (failed != 0) {
        return Error::from_errno(failed, "spawn(" + program + ")");
    }
    return pid;
}

Status outcome_of(const siginfo_t& how) {
    if (how.si_code != CLD_EXITED) {
        return Error(
            ErrorCode::kCancelled,
            "the process that makes the image was ended by signal " +
                std::to_string(how.si_status));
    }
    return how.si_status == 0 ? Status(ok())
                              : Error(ErrorCode::kUnavailable, "the image could not be made");
}

}  // namespace

std::string own_program() {
    constexpr const char* kSelf = "/proc/self/exe";
    std::error_code error;
    const auto path = std::filesystem::read_symlink(kSelf, error);
    if (error || !std::filesystem::equivalent(path, kSelf, error) || error) {
        return kSelf;
    }
    return path.string();
}

struct BuildProcess::State : std::enable_shared_from_this<BuildProcess::State> {
    State(asio::io_context& io, Hooks given) : hooks(std::move(given)), errors(io), process(io) {}

    void read() {
        errors.async_read_some(
            asio::buffer(piece),
            [self = shared_from_this()](const boost::system::error_code& error, std::size_t bytes) {
                if (self->closed) {
                    return;
                }
                if (error) {  // the other end is closed
                    self->end_line();
                    self->await_end();
                    return;
                }
                self->take({self->piece.data(), bytes});
                self->read();
            });
    }

    void take(std::string_view text) {
        for (const char c : text) {
            if (c == '\n') {
                end_line();
            } else if (line.size() < kBuildLineBytesMax) {
                line += c;
            }
        }
    }

    void end_line() {
        if (const std::string whole = std::exchange(line, {}); !whole.empty() && !closed) {
            hooks.on_line(whole);
        }
    }

    void await_end() {
        if (closed) {
            return;
        }
        process.async_wait(
            asio::posix::stream_descriptor::wait_read,
            [self = shared_from_this()](const boost::system::error_code& error) {
                if (error || self->closed) {
                    return;
                }
                siginfo_t how{};
                const auto pidfd = static_cast<id_t>(self->process.native_handle());
                const bool known = ::waitid(P_PIDFD, pidfd, &how, WEXITED | WNOHANG) == 0;
                const Status outcome =
                    known ? outcome_of(how) : Error::from_errno(errno, "waitid(image build)");
                // By value: it may remove the BuildProcess.
                const auto on_end = self->hooks.on_end;
                on_end(outcome);
            });
    }

    Hooks hooks;
    asio::posix::stream_descriptor errors;   // what it writes to stderr
    asio::posix::stream_descriptor process;  // a pidfd
    std::array<char, kBuildLineBytesMax> piece{};
    std::string line;
    bool closed = false;
};

Result<std::unique_ptr<BuildProcess>> BuildProcess::start(
    asio::io_context& io,
    const std::string& program,
    const std::vector<std::string>& arguments,
    Hooks hooks) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) < 0) {
        return Error::from_errno(errno, "pipe(image build)");
    }
    UniqueFd ours(ends[0]);
    const UniqueFd theirs(ends[1]);
    BOOST_OUTCOME_TRY(const pid_t pid, spawn_detached(program, arguments, theirs.get()));
    // The pid cannot be another's yet: we have not waited for it.
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd) {
        return Error::from_errno(errno, "pidfd_open(image build)");
    }
    auto state = std::make_shared<State>(io, std::move(hooks));
    boost::system::error_code error;
    (void)state->errors.assign(ours.release(), error);
    if (!error) {
        (void)state->process.assign(pidfd.release(), error);
    }
    if (error) {
        return Error(ErrorCode::kSystem, "watch the image build: " + error.message());
    }
    state->read();
    return std::unique_ptr<BuildProcess>(new BuildProcess(std::move(state)));
}

BuildProcess::~BuildProcess() {
    state_->closed = true;
    boost::system::error_code ignored;  // Ignored: what was waited for is given up either way.
    (void)state_->errors.close(ignored);
    (void)state_->process.close(ignored);
}

}  // namespace cellkeep::cli
