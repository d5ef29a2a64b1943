// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/connection/program.hpp"

#include "kernel-manager/tools/config/variables.hpp"
#include "protocol/support/syscall.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <utility>

namespace cellkeep::tools {

namespace {

constexpr int kFirstFreeDescriptor = 3;

/// The arguments of posix_spawn(3).
class SpawnPlan {
 public:
    SpawnPlan() {
        if (::posix_spawn_file_actions_init(&actions_) != 0) {
            return;
        }
        if (::posix_spawnattr_init(&attributes_) != 0) {
            (void)::posix_spawn_file_actions_destroy(&actions_);  // Ignored: cannot fail.
            return;
        }
        made_ = true;
    }
    SpawnPlan(const SpawnPlan&) = delete;
    SpawnPlan& operator=(const SpawnPlan&) = delete;
    ~SpawnPlan() {
        if (made_) {
            (void)::posix_spawn_file_actions_destroy(&actions_);  // Ignored: cannot fail.
            (void)::posix_spawnattr_destroy(&attributes_);        // Ignored: cannot fail.
        }
    }

    /// Returns an error number, or 0.
    int set(const std::array<int, 3>& standard, const std::string& directory) {
        int failed = made_ ? 0 : ENOMEM;
        for (int number = 0; number < kFirstFreeDescriptor && failed == 0; ++number) {
            failed = ::posix_spawn_file_actions_adddup2(
                &actions_, standard.at(static_cast<std::size_t>(number)), number);
        }
        if (failed == 0) {
            failed = ::posix_spawn_file_actions_addclosefrom_np(&actions_, kFirstFreeDescriptor);
        }
        if (failed == 0 && !directory.empty()) {
            failed = ::posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str());
        }
        return failed != 0 ? failed : set_signals();
    }
    const posix_spawn_file_actions_t* actions() const { return &actions_; }
    const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
    /// This process ignores SIGPIPE, and what it starts must not.
    int set_signals() {
        sigset_t none{};
        sigset_t usual{};
        (void)::sigemptyset(&none);          // Ignored: cannot fail.
        (void)::sigemptyset(&usual);         // Ignored: cannot fail.
        (void)::sigaddset(&usual, SIGPIPE);  // Ignored: cannot fail.
        int failed = ::posix_spawnattr_setsigmask(&attributes_, &none);
        failed = failed != 0 ? failed : ::posix_spawnattr_setsigdefault(&attributes_, &usual);
        constexpr int kFlags = POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
        return failed != 0 ? failed
                           : ::posix_spawnattr_setflags(&attributes_, static_cast<short>(kFlags));
    }

    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
    bool made_ = false;
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) {
        pointers.push_back(text.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

Result<pid_t> spawn_program(const ProgramPlace& place, const std::array<int, 3>& standard) {
    std::vector<std::string> words{place.command};
    words.insert(words.end(), place.arguments.begin(), place.arguments.end());
    std::vector<std::string> variables = environment_of(place);
    const std::vector<char*> argv = pointers_to(words);
    const std::vector<char*> envp = pointers_to(variables);
    SpawnPlan plan;
    int failed = plan.set(standard, place.directory);
    pid_t pid = -1;
    if (failed == 0) {
        failed = ::posix_spawnp(
            &pid,
            place.command.c_str(),
            plan.actions(),
            plan.attributes(),
            argv.data(),
            envp.data());
    }
    if (failed != 0) {
        return Error::from_errno(failed, "start(" + place.command + ")");
    }
    return pid;
}

}  // namespace

std::vector<std::string> environment_of(const ProgramPlace& place) {
    std::map<std::string, std::string> variables;
    for (const std::string_view name : kInheritedVariables) {
        // The environment does not change after the start.
        const char* value =
            std::getenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe)
        if (value != nullptr) {
            variables.emplace(name, value);
        }
    }
    for (const auto& [name, value] : place.variables) {
        variables.insert_or_assign(name, value);
    }
    std::vector<std::string> texts;
    texts.reserve(variables.size());
    for (const auto& [name, value] : variables) {
        texts.push_back(name + "=" + value);
    }
    return texts;
}

Result<Program> Program::start(const ProgramPlace& place) {
    BOOST_OUTCOME_TRY(Pipe input, make_pipe());
    BOOST_OUTCOME_TRY(Pipe output, make_pipe());
    BOOST_OUTCOME_TRY(Pipe errors, make_pipe());
    for (const int ours : {input.write_end.get(), output.read_end.get(), errors.read_end.get()}) {
        BOOST_OUTCOME_TRY(set_nonblocking(ours));
    }
    Program program;
    BOOST_OUTCOME_TRY(
        program.pid_,
        spawn_program(
            place, {input.read_end.get(), output.write_end.get(), errors.write_end.get()}));
    // The pid cannot be another's yet: nobody has waited for it.
    program.end_.reset(static_cast<int>(::syscall(SYS_pidfd_open, program.pid_, 0)));
    if (!program.end_) {
        return Error::from_errno(errno, "pidfd_open(" + place.command + ")");
    }
    program.input_ = std::move(input.write_end);
    program.output_ = std::move(output.read_end);
    program.errors_ = std::move(errors.read_end);
    return program;
}

Program::Program(Program&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)),
      end_(std::move(other.end_)) {}

Program::~Program() {
    if (pid_ <= 0) {
        return;
    }
    // The group is its own as long as nobody has waited for its leader.
    (void)::kill(-pid_, SIGKILL);  // Ignored: it may have ended.
    (void)::kill(pid_, SIGKILL);   // Ignored: it may have ended.
    siginfo_t how{};
    while (::waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED) != 0 && errno == EINTR) {
    }
}

void Program::ask_to_end() const {
    (void)::kill(-pid_, SIGTERM);  // Ignored: it may have ended.
}

}  // namespace cellkeep::tools
