// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup/leftovers.hpp"

#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>

namespace cellkeep::sandbox {

namespace {

/// <temporary>/server/session with a file in it, so that it is as busy as a cgroup with a process.
class BusyDirectory {
 public:
    BusyDirectory() {
        std::string name = std::filesystem::temp_directory_path() / "cellkeep-leftovers-XXXXXX";
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        root_ = name;
        REQUIRE(std::filesystem::create_directories(session() + "/process"));
    }
    BusyDirectory(const BusyDirectory&) = delete;
    BusyDirectory& operator=(const BusyDirectory&) = delete;
    ~BusyDirectory() { std::filesystem::remove_all(root_); }

    std::string session() const { return root_ + "/server/session"; }
    std::string server() const { return root_ + "/server"; }
    void let_go() { REQUIRE(std::filesystem::remove(session() + "/process")); }

 private:
    std::string root_;
};

}  // namespace

TEST_CASE("a leftover directory is removed when it is free, and the server's above it") {
    BusyDirectory directory;
    leave_behind({UniqueFd(), {directory.session()}});
    CHECK(clear_leftovers() == 1);
    CHECK(std::filesystem::exists(directory.session()));
    directory.let_go();
    CHECK(clear_leftovers() == 0);
    CHECK_FALSE(std::filesystem::exists(directory.server()));
}

TEST_CASE("a leftover process is reaped before its directories are touched") {
    BusyDirectory directory;
    directory.let_go();
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        (void)::pause();
        ::_exit(0);
    }
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    REQUIRE(pidfd);
    leave_behind({std::move(pidfd), {directory.session()}});
    CHECK(clear_leftovers() == 1);
    CHECK(std::filesystem::exists(directory.session()));
    REQUIRE(::kill(child, SIGKILL) == 0);
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
    CHECK(clear_leftovers() == 0);
    CHECK_FALSE(std::filesystem::exists(directory.session()));
    CHECK(::waitpid(child, nullptr, 0) == -1);
    CHECK(errno == ECHILD);
}

TEST_CASE("who waits for leftovers waits for a killed process and its directories") {
    BusyDirectory directory;
    directory.let_go();
    auto held = make_pipe();
    REQUIRE(held.has_value());
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        // It ends when the test's end of the pipe is closed.
        char byte = 0;
        held.value().write_end.reset();
        (void)!::read(held.value().read_end.get(), &byte, 1);
        ::_exit(0);
    }
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    REQUIRE(pidfd);
    leave_behind({std::move(pidfd), {directory.session()}});
    CHECK(wait_for_leftovers(std::chrono::milliseconds(0)) == 1);
    CHECK(wait_for_leftovers(std::chrono::milliseconds(50)) == 1);
    CHECK(std::filesystem::exists(directory.session()));
    held.value().write_end.reset();
    CHECK(wait_for_leftovers(std::chrono::minutes(1)) == 0);
    CHECK_FALSE(std::filesystem::exists(directory.server()));
    CHECK(wait_for_leftovers(std::chrono::minutes(1)) == 0);
}

TEST_CASE("nothing is kept of nothing, and what is gone already is no failure") {
    leave_behind({});
    leave_behind({UniqueFd(), {"/no/such/directory/server/session"}});
    CHECK(clear_leftovers() == 0);
}

TEST_CASE("as many leftovers as the bound are kept, and one more pushes out the oldest") {
    BusyDirectory oldest;
    BusyDirectory others;
    leave_behind({UniqueFd(), {oldest.session()}});
    for (std::size_t i = 1; i < kLeftoversMax; ++i) {
        leave_behind({UniqueFd(), {others.session()}});
    }
    CHECK(clear_leftovers() == kLeftoversMax);
    leave_behind({UniqueFd(), {others.session()}});
    CHECK(clear_leftovers() == kLeftoversMax);
    oldest.let_go();
    others.let_go();
    CHECK(clear_leftovers() == 0);
    CHECK(std::filesystem::exists(oldest.session()));
    CHECK_FALSE(std::filesystem::exists(others.session()));
}

}  // namespace cellkeep::sandbox
