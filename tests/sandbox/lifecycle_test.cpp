// SPDX-License-Identifier: Apache-2.0
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::test {

TEST_CASE("a program runs inside, its output arrives and its exit code is reported") {
    auto sandbox = make_sandbox();
    const Ran ran = run_inside(sandbox, {"/usr/bin/sh", "-c", "echo out; echo err >&2; exit 7"});
    CHECK(ran.out == "out\n");
    CHECK(ran.err == "err\n");
    CHECK_FALSE(ran.signaled);
    CHECK(ran.status == 7);
    require_ok(sandbox.destroy());
}

TEST_CASE("scratch") {
    auto sandbox = make_sandbox();
    for (const auto& c : sandbox.isolation().controls) {
        WARN(c.name << ": " << to_string(c.state) << " " << c.mechanism << " " << c.detail);
    }
    Ran ran = run_inside(
        sandbox,
        {"/usr/bin/sh",
         "-c",
         "id; ls -la / /dev /proc /etc /proc/self/fd; cat /proc/self/mountinfo /proc/self/status "
         "/proc/self/cgroup /proc/self/oom_score_adj; ulimit -a; python3 -c 'import os; "
         "print(os.environ, os.cpu_count())'; ps"});
    WARN(ran.out << ran.err);
    require_ok(sandbox.destroy());
}

}  // namespace cellkeep::test
