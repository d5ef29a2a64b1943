// SPDX-License-Identifier: Apache-2.0
#include "sandbox/policy/seccomp_policy.hpp"

#include <catch2/catch.hpp>

#include <linux/filter.h>

namespace cellkeep::sandbox {

TEST_CASE("the filter compiles to a program that the kernel can take") {
    const auto program = seccomp_program();
    REQUIRE(program.has_value());
    CHECK(program.value().size() % sizeof(sock_filter) == 0);
    CHECK(program.value().size() / sizeof(sock_filter) > 100);
    CHECK(program.value().size() / sizeof(sock_filter) <= BPF_MAXINSNS);
}

TEST_CASE("the filter is compiled once and always the same") {
    CHECK(seccomp_program().value() == seccomp_program().value());
    CHECK(seccomp_program(true).value() == seccomp_program(true).value());
}

TEST_CASE("only the filter of a session that can be branched asks about more calls") {
    CHECK(seccomp_program(false).value() == seccomp_program().value());
    const auto with_branches = seccomp_program(true);
    REQUIRE(with_branches.has_value());
    CHECK(with_branches.value() != seccomp_program().value());
    CHECK(with_branches.value().size() / sizeof(sock_filter) <= BPF_MAXINSNS);
}

}  // namespace cellkeep::sandbox
