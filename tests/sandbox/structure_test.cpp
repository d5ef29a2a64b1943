// SPDX-License-Identifier: Apache-2.0
//
// Layers that stand behind others, so that no attempt from inside would notice their absence: the
// tests look at each one alone.
#include "protocol/support/syscall.hpp"
#include "sandbox/inside/worker_birth.hpp"
#include "tests/sandbox/bare_sandbox.hpp"
#include "tests/sandbox/fixture.hpp"
#include "tests/support/held_process.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>

namespace cellkeep::test {

using sandbox::Policy;
using sandbox::Sandbox;

namespace {

/// Field of /proc/<pid>/stat, counted as in proc_pid_stat(5), from 4 on.
std::string stat_field(pid_t pid, int field) {
    const std::string text = slurp("/proc/" + std::to_string(pid) + "/stat");
    std::istringstream in(text.substr(text.rfind(')') + 2));
    std::string word;
    for (int at = 3; at <= field; ++at) {
        in >> word;
    }
    return word;
}

/// Runs a function in a child, for changes that this process could not undo; returns its exit code.
int in_child(const std::function<int()>& run) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::_exit(run());
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// Ends as a program that asks for descriptor 50, which it has without close-on-exec and was not
/// given: 1 if there is none.
int ask_for_stray_descriptor(bool as_worker) {
    char program[] = "/usr/bin/readlink";
    char quiet[] = "-q";
    char path[] = "/proc/self/fd/50";
    char directory[] = "/";
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || ::dup2(null, STDIN_FILENO) < 0 || ::dup2(null, 50) < 0) {
        return 100;
    }
    sandbox::Start start;
    start.directory = directory;
    start.arguments = {program, quiet, path};
    if (as_worker) {
        const std::array<int, 2> outputs{
            ::fcntl(null, F_DUPFD_CLOEXEC, 10), ::fcntl(null, F_DUPFD_CLOEXEC, 10)};
        const int failure = ::fcntl(null, F_DUPFD_CLOEXEC, 10);
        sandbox::become_worker(
            {.received = outputs, .open_files = 1024, .failure_fd = failure}, start);
    }
    (void)::dup2(null, STDOUT_FILENO);
    (void)::execve(program, start.arguments.data(), start.environment.data());
    return 101;
}

}  // namespace

TEST_CASE("every namespace of a session is its own") {
    auto sandbox = make_sandbox();
    auto other = make_sandbox();
    for (const char* name : {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"}) {
        const std::string path = std::string("/proc/self/ns/") + name;
        const std::string inside = run_inside(sandbox, {"/usr/bin/readlink", path}).out;
        INFO(name);
        CHECK(inside.find(name) == 0);
        CHECK(inside != std::filesystem::read_symlink(path).string() + "\n");
        CHECK(inside != run_inside(other, {"/usr/bin/readlink", path}).out);
    }
    require_ok(sandbox.destroy(kPatience));
    require_ok(other.destroy(kPatience));
}

TEST_CASE("pid 1 and every worker have a process session of their own and no terminal") {
    auto sandbox = make_sandbox();
    const pid_t pid1 = only_child();
    CHECK(stat_field(pid1, 6) == std::to_string(pid1));
    CHECK(stat_field(pid1, 7) == "0");
    CHECK(
        run_python(
            sandbox, "import os\nprint(os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid())")
            .out == "True True\n");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("pid 1 has no more rights than its workers") {
    auto sandbox = make_sandbox();
    const std::string status = slurp("/proc/" + std::to_string(only_child()) + "/status");
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
        CHECK_THAT(status, Catch::Contains(std::string(set) + ":\t0000000000000000\n"));
    }
    CHECK_THAT(status, Catch::Contains("NoNewPrivs:\t1\n"));
    CHECK_THAT(status, Catch::Contains("Seccomp:\t2\n"));
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("capabilities cannot come back by an exec: the securebits are set and locked") {
    auto sandbox = make_sandbox();
    CHECK(probe_inside(sandbox, {"securebits"}) == "ok");
    CHECK(probe_outside({"securebits"}) == "ENODATA");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a pid 1 that is stopped dies with its server all the same") {
    auto pair = make_socket_pair(SOCK_SEQPACKET);
    auto& [mine, theirs] = pair.value();
    const pid_t server = ::fork();
    REQUIRE(server >= 0);
    if (server == 0) {
        auto made = Sandbox::create(test_policy());
        if (made.has_error()) {
            ::_exit(1);
        }
        const pid_t pid1 = only_child();
        if (::kill(pid1, SIGSTOP) < 0) {
            ::_exit(2);
        }
        (void)send_with_fds(theirs.get(), std::as_bytes(std::span(&pid1, 1)), {}).has_value();
        (void)::pause();
        ::_exit(0);
    }
    theirs.reset();
    REQUIRE(wait_readable(mine.get()));
    pid_t pid1 = 0;
    REQUIRE(receive_with_fds(mine.get(), std::as_writable_bytes(std::span(&pid1, 1))).has_value());
    const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid1, 0)));
    REQUIRE(handle);
    REQUIRE(::kill(server, SIGKILL) == 0);
    REQUIRE(::waitpid(server, nullptr, 0) == server);
    const bool died = wait_readable(handle.get());
    CHECK(died);
    if (!died) {
        (void)::kill(pid1, SIGKILL);
    }
    require_ok(sandbox::sweep_leftovers());
}

TEST_CASE("a pid 1 whose server has let go of its socket ends, and everything inside with it") {
    auto pid1 = launch_without_filter();
    auto pidfd = std::move(pid1.pidfd);
    pid1.control.reset();
    CHECK(wait_readable(pidfd.get()));
    require_ok(sandbox::kill_and_reap(pidfd, kPatience));
}

TEST_CASE("no mount inside is tied to one outside") {
    auto sandbox = make_sandbox();
    std::istringstream mounts(run_inside(sandbox, {"/usr/bin/cat", "/proc/self/mountinfo"}).out);
    for (std::string line; std::getline(mounts, line);) {
        INFO(line);
        CHECK(line.find(" shared:") == std::string::npos);
        CHECK(line.find(" master:") == std::string::npos);
    }
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("on a host whose mounts are shared, what is mounted later does not come in") {
    if (::geteuid() != 0) {
        return;  // Sharing mounts takes root.
    }
    CHECK(in_child([] {
              // A shared tree beneath a shared root, in a mount namespace of this child's.
              if (::unshare(CLONE_NEWNS) < 0 ||
                  ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0 ||
                  ::mount("tmpfs", "/mnt", "tmpfs", 0, "mode=0755") < 0 ||
                  ::mount("none", "/", nullptr, MS_REC | MS_SHARED, nullptr) < 0 ||
                  ::mkdir("/mnt/data", 0755) < 0) {
                  return 1;
              }
              Policy policy = test_policy();
              policy.read_only.push_back({"/mnt", "/data"});
              auto made = Sandbox::create(policy);
              if (made.has_error()) {
                  return 2;
              }
              if (::mount("tmpfs", "/mnt/data", "tmpfs", 0, "mode=0755") < 0 ||
                  ::mkdir("/mnt/data/later", 0755) < 0) {
                  return 3;
              }
              const Ran seen = run_inside(made.value(), {"/usr/bin/ls", "/data/data"});
              const Ran table = run_inside(made.value(), {"/usr/bin/cat", "/proc/self/mountinfo"});
              if (seen.status != 0 || !seen.out.empty()) {
                  return 4;
              }
              return table.out.find(" master:") == std::string::npos &&
                             table.out.find(" shared:") == std::string::npos
                         ? 0
                         : 5;
          }) == 0);
}

TEST_CASE("CVE-2025-31133: a host device that is another file makes no sandbox") {
    if (::geteuid() != 0) {
        return;  // Planting one takes root.
    }
    for (const char* planted : {"/etc/passwd", "/dev/full"}) {
        INFO(planted);
        CHECK(in_child([&] {
                  if (::unshare(CLONE_NEWNS) < 0 ||
                      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0 ||
                      ::mount(planted, "/dev/urandom", nullptr, MS_BIND, nullptr) < 0) {
                      return 1;
                  }
                  const auto made = Sandbox::create(test_policy());
                  return made.has_error() &&
                                 made.error().message().find("device") != std::string::npos
                             ? 0
                             : 2;
              }) == 0);
    }
}

TEST_CASE("the groups of a server that is root do not come in") {
    if (::geteuid() != 0) {
        return;
    }
    CHECK(in_child([] {
              const gid_t group = 4;
              if (::setgroups(1, &group) < 0) {
                  return 1;
              }
              auto sandbox = make_sandbox();
              const Ran ran = run_inside(sandbox, {"/usr/bin/grep", "Groups", "/proc/self/status"});
              return ran.out == "Groups:\t \n" ? 0 : 2;
          }) == 0);
}

TEST_CASE("processes are limited twice: by the cgroup and by the rlimit") {
    Policy policy = test_policy();
    policy.limits.processes = 20;
    auto sandbox = make_sandbox(policy);
    bool counted = false;  // by a cgroup, which an ordinary user may have been given, too
    for (const auto& control : sandbox.isolation().controls) {
        counted = counted || (control.name == "process_limit" &&
                              control.state == sandbox::ControlState::kApplied);
    }
    CHECK((counted || ::geteuid() != 0));
    CHECK(
        run_python(sandbox, "import resource\nprint(resource.getrlimit(resource.RLIMIT_NPROC))")
            .out == (counted ? "(22, 22)\n" : "(21, 21)\n"));
    if (counted) {
        bool found = false;
        for (const std::string& directory : cgroups_of(::getpid())) {
            found = found || slurp(directory + "/pids.max") == "21\n";
        }
        CHECK(found);
    }
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("the shared-memory directory holds no programs") {
    auto sandbox = make_sandbox();
    const Ran ran = run_inside(
        sandbox, {"/usr/bin/sh", "-c", "cp /usr/bin/true /dev/shm/ && /dev/shm/true; echo $?"});
    CHECK(ran.out == "126\n");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a worker closes what it was not given, also what would outlive the exec") {
    REQUIRE(in_child([] { return ask_for_stray_descriptor(false); }) == 0);
    CHECK(in_child([] { return ask_for_stray_descriptor(true); }) == 1);
}

TEST_CASE("no group can be dropped in either of a session's user namespaces") {
    auto sandbox = make_sandbox();
    const auto worker = start_inside(sandbox, {"/usr/bin/sleep", "1000"});
    const std::string path = "/proc/" + std::to_string(pid_of(worker.pidfd.get())) + "/ns/user";
    const auto flag_in = [&path](bool outer) {
        return in_child([&] {
            int user = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
            if (outer) {
                user = ::ioctl(user, NS_GET_PARENT);
            }
            if (user < 0 || ::setns(user, CLONE_NEWUSER) < 0) {
                return 100;
            }
            const std::string flag = slurp("/proc/self/setgroups");
            return flag == "deny\n" ? 1 : flag == "allow\n" ? 0 : 101;
        });
    };
    CHECK(flag_in(false) == 1);
    CHECK(flag_in(true) == 1);
    require_ok(sandbox.destroy(kPatience));
}

}  // namespace cellkeep::test
