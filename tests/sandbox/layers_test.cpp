// SPDX-License-Identifier: Apache-2.0
//
// The wall without its last layer: a sandbox whose seccomp filter allows every call. What is
// refused here is refused by namespaces, mounts, capabilities, rlimits and Landlock alone.
#include "tests/sandbox/bare_sandbox.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace cellkeep::test {

using sandbox::kill_and_reap;
using sandbox::Launched;

TEST_CASE("without the filter a nested user namespace is still refused, by the limit on them") {
    const Launched pid1 = launch_without_filter();
    CHECK(probe(pid1, {"unshare", text(CLONE_NEWUSER)}) == "ENOSPC");
    CHECK(probe(pid1, {"clone", text(CLONE_NEWUSER)}) == "ENOSPC");
    require_ok(kill_and_reap(pid1.pidfd, kPatience));
}

TEST_CASE("without the filter no other namespace, mount or root can be had") {
    const Launched pid1 = launch_without_filter();
    for (const int flag :
         {CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWNET, CLONE_NEWCGROUP}) {
        CHECK(probe(pid1, {"unshare", text(flag)}) == "EPERM");
        CHECK(probe(pid1, {"clone", text(flag)}) == "EPERM");
    }
    for (const std::vector<std::string>& attempt : std::vector<std::vector<std::string>>{
             {"setns"}, {"fsopen", "tmpfs"}, {"open_tree"}, {"chroot"}}) {
        INFO(attempt[0]);
        CHECK(probe(pid1, attempt) == "EPERM");
    }
    require_ok(kill_and_reap(pid1.pidfd, kPatience));
}

TEST_CASE("without the filter no capability is there to be used") {
    const Launched pid1 = launch_without_filter();
    CHECK(probe(pid1, {"socket", text(AF_PACKET), text(SOCK_RAW), "0"}) == "EPERM");
    CHECK(probe(pid1, {"socket", text(AF_INET), text(SOCK_RAW), "1"}) == "EPERM");
    CHECK(probe(pid1, {"mknod_device", "/tmp"}) == "EACCES");  // Landlock speaks first
    CHECK(probe(pid1, {"fifo_scheduler"}) == "EPERM");
    CHECK(probe(pid1, {"syscall", text(SYS_setuid), "0"}) == "EINVAL");  // not in the map
    CHECK(probe(pid1, {"syscall", text(SYS_setgroups), "0", "0"}) == "EPERM");
    CHECK(probe(pid1, {"syscall", text(SYS_sethostname), "0", "0"}) == "EPERM");
    CHECK(probe(pid1, {"syscall", text(SYS_settimeofday), "0", "0"}) == "EPERM");
    CHECK(probe(pid1, {"syscall", text(SYS_reboot), "0", "0", "0", "0"}) == "EPERM");
    CHECK(probe(pid1, {"syscall", text(SYS_swapon), "0", "0"}) == "EPERM");
    require_ok(kill_and_reap(pid1.pidfd, kPatience));
}

TEST_CASE("without the filter the host's processes and files are still not there") {
    const Launched pid1 = launch_without_filter();
    CHECK(probe(pid1, {"kill", text(::getpid())}) == "ESRCH");
    CHECK(probe(pid1, {"prlimit_other", text(::getpid())}) == "ESRCH");
    CHECK(probe(pid1, {"open", "/etc/shadow", "r"}) == "ENOENT");
    CHECK(probe(pid1, {"open", "/proc/1/environ", "r"}) == "ENOENT");
    CHECK(probe(pid1, {"open", "/proc/self/uid_map", "w"}) == "EROFS");
    CHECK(probe(pid1, {"open", "/proc/self/mem", "rw"}) == "EROFS");
    if (pid1.report.landlock_abi >= 5) {
        CHECK(probe(pid1, {"ioctl", "0x5401"}) == "EACCES");  // TCGETS
    }
    require_ok(kill_and_reap(pid1.pidfd, kPatience));
}

}  // namespace cellkeep::test
