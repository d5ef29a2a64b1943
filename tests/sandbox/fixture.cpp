// SPDX-License-Identifier: Apache-2.0
#include "tests/sandbox/fixture.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/policy/host_mode.hpp"
#include "sandbox/server/network_pool.hpp"
#include "tests/sandbox/test_zygote.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

namespace cellkeep::test {

using sandbox::Policy;
using sandbox::Sandbox;
using sandbox::SandboxEvent;
using sandbox::Worker;
using sandbox::WorkerSpec;

Policy test_policy() {
    Policy policy;
    policy.read_only = {
        {"/usr", "/usr"},
        {"/etc/ld.so.cache", "/etc/ld.so.cache", false, true},
        {"/etc/alternatives", "/etc/alternatives", false, true},
        {CELLKEEP_PROBE, "/probe"},
    };
    if (sandbox::run_mode() == sandbox::RunMode::kRoot) {
        policy.host_uid = kSessionUid;
        policy.host_gid = kSessionUid;
    } else {
        policy.allow_degraded = {
            "memory_limit", "process_limit", "cpu_limit", "cpu_accounting", "freeze"};
    }
    policy.allow_degraded.insert("private_image");  // these tests are of the wall around it
    return policy;
}

void require_ok(const Status& status) {
    if (status.has_error()) {
        FAIL(status.error().message() << " (" << status.error().hint() << ")");
    }
}

Sandbox make_sandbox(const Policy& policy) {
    auto made = Sandbox::create(policy, zygote_for(policy));
    if (made.has_error()) {
        FAIL(made.error().message() << " (" << made.error().hint() << ")");
    }
    return std::move(made).value();
}

bool wait_readable(int fd) {
    pollfd watched{fd, POLLIN, 0};
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience);
    return ::poll(&watched, 1, static_cast<int>(patience.count())) == 1;
}

std::string read_all(int fd) {
    std::string text;
    while (true) {
        REQUIRE(wait_readable(fd));
        std::array<char, 4096> buffer{};
        const ssize_t got = ::read(fd, buffer.data(), buffer.size());
        REQUIRE(got >= 0);
        if (got == 0) {
            return text;
        }
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
}

SandboxEvent wait_any_event(Sandbox& sandbox) {
    REQUIRE(wait_readable(sandbox.event_fd()));
    auto event = sandbox.next_event();
    REQUIRE(event.has_value());
    REQUIRE(event.value().has_value());
    return *event.value();
}

SandboxEvent wait_event(Sandbox& sandbox) {
    while (true) {
        SandboxEvent event = wait_any_event(sandbox);
        if (event.kind != SandboxEvent::Kind::kDenied) {
            return event;
        }
    }
}

Ran run_inside(
    Sandbox& sandbox, const std::vector<std::string>& argv, const std::vector<std::string>& env) {
    return run_any(sandbox, argv, env, false);
}

Ran run_any(
    Sandbox& sandbox,
    const std::vector<std::string>& argv,
    const std::vector<std::string>& env,
    bool warm) {
    auto out = make_pipe();
    auto err = make_pipe();
    REQUIRE(out.has_value());
    REQUIRE(err.has_value());
    WorkerSpec spec;
    spec.argv = argv;
    spec.env = env;
    spec.warm = warm;
    spec.stdout_fd = std::move(out.value().write_end);
    spec.stderr_fd = std::move(err.value().write_end);
    auto worker = sandbox.start(std::move(spec));
    if (worker.has_error()) {
        FAIL(worker.error().message());
    }
    Ran ran;
    ran.out = read_all(out.value().read_end.get());
    ran.err = read_all(err.value().read_end.get());
    const SandboxEvent event = wait_event(sandbox);
    REQUIRE(event.kind == SandboxEvent::Kind::kWorkerExited);
    REQUIRE(event.worker.id == worker.value().id);
    ran.signaled = event.worker.signaled;
    ran.status = event.worker.status;
    return ran;
}

Ran run_python(Sandbox& sandbox, const std::string& code) {
    Ran ran = run_inside(
        sandbox, {"/usr/bin/python3", "-c", code}, {"PATH=/usr/bin:/bin", "HOME=/workspace"});
    INFO(ran.err);
    return ran;
}

std::string probe_inside(Sandbox& sandbox, const std::vector<std::string>& arguments) {
    std::vector<std::string> argv{"/probe"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    std::vector<std::string> env;
    if (sandbox.is_warm()) {  // it has no arguments of its own
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            env.push_back("PROBE_" + std::to_string(i) + "=" + arguments[i]);
        }
    }
    const Ran ran = run_any(sandbox, argv, env, sandbox.is_warm());
    if (ran.signaled) {
        return "signal " + std::to_string(ran.status);
    }
    return ran.out.substr(0, ran.out.find_last_not_of('\n') + 1) + ran.err;
}

std::string probe_outside(const std::vector<std::string>& arguments) {
    auto out = make_pipe();
    REQUIRE(out.has_value());
    std::vector<std::string> strings{CELLKEEP_PROBE};
    strings.insert(strings.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    argv.reserve(strings.size() + 1);
    for (std::string& text : strings) {
        argv.push_back(text.data());
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    REQUIRE(::posix_spawn_file_actions_init(&actions) == 0);
    REQUIRE(::posix_spawn_file_actions_adddup2(&actions, out.value().write_end.get(), 1) == 0);
    pid_t pid = -1;
    std::array<char*, 1> env{nullptr};
    REQUIRE(::posix_spawn(&pid, CELLKEEP_PROBE, &actions, nullptr, argv.data(), env.data()) == 0);
    REQUIRE(::posix_spawn_file_actions_destroy(&actions) == 0);
    out.value().write_end.reset();
    std::string text = read_all(out.value().read_end.get());
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    if (WIFSIGNALED(status)) {
        return "signal " + std::to_string(WTERMSIG(status));
    }
    return text.substr(0, text.find_last_not_of('\n') + 1);
}

Worker start_inside(Sandbox& sandbox, const std::vector<std::string>& argv) {
    WorkerSpec spec;
    spec.argv = argv;
    for (UniqueFd* fd : {&spec.stdout_fd, &spec.stderr_fd}) {
        auto null = open_file("/dev/null", O_WRONLY);
        REQUIRE(null.has_value());
        *fd = std::move(null).value();
    }
    auto worker = sandbox.start(std::move(spec));
    if (worker.has_error()) {
        FAIL(worker.error().message());
    }
    return std::move(worker).value();
}

namespace {

/// Whether the directory of a server (the first name_end characters of path) has one for the server
/// itself, and path is one of the two, or further down there.
bool is_aside(const std::string& path, std::size_t name_end) {
    const std::string own = path.substr(0, name_end) + "/server";
    return std::filesystem::exists(own) && (name_end == std::string::npos || path.starts_with(own));
}

/// Whether it is a zombie, or gone.
bool is_zombie_or_gone(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(in, text);
    // The state is behind the name, which may hold anything, proc_pid_stat(5).
    const std::size_t at = text.rfind(") ");
    return at == std::string::npos || text.find_first_of("ZX", at) == at + 2;
}

}  // namespace

std::string text(long value) {
    return std::to_string(value);
}

std::string slurp(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> cgroups_of(pid_t server) {
    const std::set<std::string> zygotes = zygote_cgroups();
    const std::string prefix = "/cellkeep-" + std::to_string(server) + "-";
    std::vector<std::string> found;
    std::vector<std::filesystem::path> pending{"/sys/fs/cgroup"};
    while (!pending.empty()) {
        const std::filesystem::path directory = std::move(pending.back());
        pending.pop_back();
        // A directory of another process may vanish while it is read. Only that one is left out
        // then; a recursive iterator would stop.
        std::error_code error;
        for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
             it.increment(error)) {
            if (it->is_directory(error) && !it->is_symlink(error)) {
                pending.push_back(it->path());
                const std::string path = it->path().string();
                const std::size_t at = path.rfind(prefix);
                if (at != std::string::npos && !is_aside(path, path.find('/', at + 1)) &&
                    !zygotes.contains(path)) {
                    found.push_back(path);
                }
            }
        }
    }
    return found;
}

std::ptrdiff_t open_descriptors() {
    // The pool begins with its first namespace, and its own come and go until it is full.
    static const bool begun = sandbox::network_pool().take(sandbox::kNetworkPatience).has_value();
    (void)begun;
    (void)zygote_for(test_policy());  // it stays, too
    (void)sandbox::network_pool().settle();
    return std::distance(
        std::filesystem::directory_iterator("/proc/self/fd"),
        std::filesystem::directory_iterator());
}

bool has_children() {
    (void)sandbox::network_pool().settle();  // While it is filled, the launcher is one.
    // This process has reaped its own children by now; a zygote's pid 1 does it in its own time.
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!children_but_zygotes().empty()) {
        if (!zygote_for(test_policy()) || std::chrono::steady_clock::now() > deadline) {
            return true;
        }
    }
    return false;
}

pid_t only_child() {
    std::vector<pid_t> children = children_but_zygotes();
    // A zygote's pid 1 reaps the processes of ended sandboxes in its own time.
    std::erase_if(children, is_zombie_or_gone);
    REQUIRE_FALSE(children.empty());
    return children.front();  // the oldest; the pool's launchers may follow
}

void await_reaper(pid_t pid) {
    const std::string own_zombie = ") Z " + std::to_string(::getpid()) + " ";
    const std::string path = "/proc/" + std::to_string(pid) + "/stat";
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    for (auto stat = read_file(path, 4096); stat.has_value() && !stat.value().empty();
         stat = read_file(path, 4096)) {
        if (stat.value().find(own_zombie) != std::string::npos) {
            return;
        }
        REQUIRE(std::chrono::steady_clock::now() < deadline);
        (void)::poll(nullptr, 0, 1);  // Ignored: no event tells it.
    }
}

}  // namespace cellkeep::test
