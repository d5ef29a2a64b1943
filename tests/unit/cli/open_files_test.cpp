// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/open_files.hpp"

#include <catch2/catch.hpp>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cellkeep::cli {
namespace {

TEST_CASE("a limit of open files too low for the sessions is reported", "[cli][open_files]") {
    for (const std::size_t sessions : {1U, 64U, 6000U}) {
        const std::uint64_t need = kServerOpenFiles + kSessionOpenFiles * sessions;
        CAPTURE(sessions, need);
        CHECK_FALSE(open_files_shortage(need, sessions).has_value());
        CHECK_FALSE(open_files_shortage(RLIM_INFINITY, sessions).has_value());
        const auto told = open_files_shortage(need - 1, sessions);
        REQUIRE(told.has_value());
        CHECK_THAT(
            *told,
            Catch::Matchers::Contains(std::to_string(need - 1)) &&
                Catch::Matchers::Contains("enough for " + std::to_string(sessions - 1) + " ") &&
                Catch::Matchers::Contains("--max-sessions " + std::to_string(sessions) + " ") &&
                Catch::Matchers::Contains("wants " + std::to_string(need) + " "));
    }
}

TEST_CASE("a limit of open files too low for the server itself is reported", "[cli][open_files]") {
    for (const std::uint64_t limit :
         {std::uint64_t{0}, kServerOpenFiles - 1, kServerOpenFiles, kServerOpenFiles + 1}) {
        CAPTURE(limit);
        const auto told = open_files_shortage(limit, 1);
        REQUIRE(told.has_value());
        CHECK_THAT(*told, Catch::Matchers::Contains("enough for 0 sessions"));
    }
}

TEST_CASE("the soft limit becomes the hard one", "[cli][open_files]") {
    struct rlimit before {};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    REQUIRE(before.rlim_max > 64);
    const struct rlimit lower { 64, before.rlim_max };
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
    const auto raised = raise_open_files(before.rlim_max);
    struct rlimit after {};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &after) == 0);
    CHECK(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    REQUIRE(raised.has_value());
    CHECK(raised.value() == before.rlim_max);
    CHECK(after.rlim_cur == before.rlim_max);
    CHECK(after.rlim_max == before.rlim_max);
}

TEST_CASE(
    "a hard limit that is too low is raised by a process with the right to do so",
    "[cli][open_files]") {
    // In a child, because a process without the right could not restore its limit.
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const struct rlimit lower { 64, 100 };
        if (::setrlimit(RLIMIT_NOFILE, &lower) != 0) {
            ::_exit(1);
        }
        const bool may = ::prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE) == 1 && ::geteuid() == 0;
        const auto raised = raise_open_files(200);
        struct rlimit after {};
        const bool read = ::getrlimit(RLIMIT_NOFILE, &after) == 0;
        const rlim_t expected = may ? 200 : 100;
        const bool good = read && raised.has_value() && raised.value() == expected &&
                          after.rlim_cur == expected && after.rlim_max == expected;
        ::_exit(good ? 0 : 2);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace cellkeep::cli
