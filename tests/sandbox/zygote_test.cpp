// SPDX-License-Identifier: Apache-2.0
//
// Sandboxes made by a zygote. That they are locked down like every other is shown by running all
// other tests with them (CMakeLists.txt).
#include "protocol/support/syscall.hpp"
#include "sandbox/host_mode.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <signal.h>
#include <unistd.h>

#include <utility>
#include <vector>

namespace cellkeep::test {

using sandbox::Policy;
using sandbox::Sandbox;
using sandbox::Zygote;

namespace {

Sandbox make_by(const std::shared_ptr<Zygote>& zygote, const Policy& policy = test_policy()) {
    auto made = Sandbox::create(policy, zygote);
    if (made.has_error()) {
        FAIL(made.error().message() << " (" << made.error().hint() << ")");
    }
    return std::move(made).value();
}

}  // namespace

TEST_CASE("a zygote's sandbox has warm workers, and ordinary ones") {
    const auto zygote = make_zygote();
    auto sandbox = make_by(zygote);
    CHECK(sandbox.is_warm());
    CHECK(probe_inside(sandbox, {"kill", "1"}) == "ok");
    const Ran ran = run_inside(sandbox, {"/usr/bin/sh", "-c", "echo out; exit 7"});
    CHECK(ran.out == "out\n");
    CHECK(ran.status == 7);
    require_ok(sandbox.destroy());
}

}  // namespace cellkeep::test
