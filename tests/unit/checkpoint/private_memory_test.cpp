// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/private_memory.hpp"

#include <catch2/catch.hpp>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cellkeep::checkpoint {
namespace {

UniqueFd pidfd_of(pid_t pid) {
    return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

TEST_CASE("a process has private memory while it lives", "[memory]") {
    const auto own = read_private_bytes(pidfd_of(::getpid()));
    REQUIRE(own.has_value());
    CHECK(*own > 4096);
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(0);
    }
    const UniqueFd ended = pidfd_of(child);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    CHECK_FALSE(read_private_bytes(ended).has_value());
    CHECK_FALSE(read_private_bytes(UniqueFd()).has_value());
}

}  // namespace
}  // namespace cellkeep::checkpoint
