// SPDX-License-Identifier: Apache-2.0
//
// The Landlock layer alone, in a process that has no other: namespaces would stop the same first.
#include "protocol/support/syscall.hpp"
#include "sandbox/host_features.hpp"
#include "sandbox/inside/lockdown.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

namespace cellkeep::test {

namespace {

/// A listener in the abstract namespace of this network.
class AbstractListener {
 public:
    AbstractListener() {
        const std::string name = "cellkeep-landlock-" + std::to_string(::getpid());
        address_.sun_family = AF_UNIX;
        std::memcpy(address_.sun_path + 1, name.data(), name.size());
        size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
        REQUIRE(::bind(fd_.get(), plain(), size_) == 0);
        REQUIRE(::listen(fd_.get(), 1) == 0);
    }
    int connect_error() {
        const UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        return ::connect(client.get(), plain(), size_) < 0 ? errno : 0;
    }

 private:
    sockaddr* plain() { return reinterpret_cast<sockaddr*>(&address_); }
    UniqueFd fd_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_un address_{};
    socklen_t size_ = 0;
};

/// An empty root with the directories that the rules name. Mounts of this process only.
bool enter_small_root() {
    const std::string uids = "0 " + std::to_string(::geteuid()) + " 1";
    const std::string gids = "0 " + std::to_string(::getegid()) + " 1";
    return ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           write_control_file("/proc/self/setgroups", "deny").has_value() &&
           write_control_file("/proc/self/uid_map", uids).has_value() &&
           write_control_file("/proc/self/gid_map", gids).has_value() &&
           ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("tmpfs", "/tmp", "tmpfs", 0, nullptr) == 0 && ::chroot("/tmp") == 0 &&
           ::chdir("/") == 0 && ::mkdir("/workspace", 0755) == 0 && ::mkdir("/tmp", 0755) == 0 &&
           ::mkdir("/dev", 0755) == 0 && ::mkdir("/dev/shm", 0755) == 0 &&
           ::mkdir("/elsewhere", 0755) == 0;
}

int open_error(const char* path, int flags) {
    const UniqueFd fd(::open(path, flags | O_CLOEXEC, 0600));
    return fd ? 0 : errno;
}

/// The exit code names the first claim that failed.
int check_landlock(AbstractListener& listener, pid_t parent) {
    if (!enter_small_root()) {
        return 77;
    }
    // The positive controls: nothing else is in the way.
    if (listener.connect_error() != 0 || ::kill(parent, 0) < 0 ||
        open_error("/elsewhere/before", O_WRONLY | O_CREAT) != 0 ||
        open_error("/workspace/before", O_WRONLY | O_CREAT) != 0) {
        return 1;
    }
    std::int32_t abi = 0;
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        sandbox::apply_landlock(sandbox::Plan(), abi) != 0) {
        return 2;
    }
    if (open_error("/elsewhere/after", O_WRONLY | O_CREAT) != EACCES ||
        open_error("/elsewhere/before", O_WRONLY) != EACCES ||
        open_error("/elsewhere/before", O_RDONLY) != 0) {
        return 3;
    }
    if (open_error("/workspace/after", O_WRONLY | O_CREAT) != 0 ||
        ::mkfifo("/tmp/fifo", 0600) < 0 || ::symlink("x", "/dev/shm/link") < 0) {
        return 4;
    }
    // Not 0: Linux 6.1 lets every user make a whiteout, which is no device.
    if (::mknod("/workspace/device", S_IFCHR | 0600, makedev(1, 3)) == 0 || errno != EACCES) {
        return 5;
    }
    if (::mount("tmpfs", "/tmp", "tmpfs", 0, nullptr) == 0 || errno != EPERM) {
        return 6;
    }
    if (abi >= 6 && listener.connect_error() != EPERM) {
        return 7;
    }
    if (abi >= 6 && (::kill(parent, 0) == 0 || errno != EPERM)) {
        return 8;
    }
    return 0;
}

}  // namespace

TEST_CASE(
    "Landlock by itself refuses writing elsewhere, devices, mounts, abstract sockets and signals") {
    if (sandbox::probe_host().landlock_abi == 0) {
        return;
    }
    AbstractListener listener;
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::_exit(check_landlock(listener, parent));
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace cellkeep::test
