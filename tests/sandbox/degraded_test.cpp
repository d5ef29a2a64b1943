// SPDX-License-Identifier: Apache-2.0
//
// A server that cannot apply a control refuses the session by name, unless the operator accepts it.
// What is missing here depends on who runs the tests; run_unprivileged.sh runs them without
// cgroups.
#include "sandbox/host_features.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

namespace cellkeep::test {

using sandbox::Control;
using sandbox::ControlState;
using sandbox::Policy;

namespace {

std::vector<Control> missing_controls() {
    std::vector<Control> missing;
    for (const Control& control : sandbox::probe_host().controls) {
        if (control.state != ControlState::kApplied) {
            missing.push_back(control);
        }
    }
    return missing;
}

}  // namespace

TEST_CASE("the host's probe has a row for every control, with a fix for what is missing") {
    const auto features = sandbox::probe_host();
    REQUIRE(features.controls.size() == sandbox::control_names().size());
    for (std::size_t i = 0; i < features.controls.size(); ++i) {
        const Control& control = features.controls[i];
        INFO(control.name);
        CHECK(control.name == sandbox::control_names()[i]);
        CHECK(control.mechanism.empty() == (control.state == ControlState::kAbsent));
        CHECK(control.fix.empty() == (control.state == ControlState::kApplied));
    }
    CHECK((features.mode == sandbox::RunMode::kRoot) == (::geteuid() == 0));
    CHECK_FALSE(features.kernel_release.empty());
}

TEST_CASE("a missing control refuses the session by name, with the fix and the way to accept it") {
    const auto missing = missing_controls();
    Policy policy = test_policy();
    policy.allow_degraded.clear();
    const auto made = sandbox::Sandbox::create(policy);
    CHECK(made.has_value() == missing.empty());
    if (made.has_error()) {
        CHECK(made.error().code() == ErrorCode::kUnavailable);
        CHECK_THAT(made.error().message(), Catch::Contains("control " + missing[0].name));
        CHECK_THAT(made.error().hint(), Catch::Contains("--allow-degraded=" + missing[0].name));
    }
}

TEST_CASE("accepting all but one of the missing controls still refuses") {
    const auto missing = missing_controls();
    for (const Control& left_out : missing) {
        Policy policy = test_policy();
        policy.allow_degraded.erase(left_out.name);
        const auto made = sandbox::Sandbox::create(policy);
        REQUIRE(made.has_error());
        CHECK_THAT(made.error().message(), Catch::Contains("control " + left_out.name));
    }
}

TEST_CASE("an accepted degradation is reported for what it is") {
    auto sandbox = make_sandbox();
    const auto missing = missing_controls();
    for (const Control& control : sandbox.isolation().controls) {
        const bool is_missing =
            std::any_of(missing.begin(), missing.end(), [&](const Control& other) {
                return other.name == control.name && other.state == control.state;
            });
        INFO(control.name);
        CHECK((control.state == ControlState::kApplied) != is_missing);
    }
    CHECK(sandbox.isolation().complete() == missing.empty());
}

TEST_CASE("without a memory cgroup each process still has a bound") {
    Policy policy = test_policy();
    policy.limits.memory_bytes = 256ULL << 20U;
    auto sandbox = make_sandbox(policy);
    const Ran ran =
        run_python(sandbox, "x = bytearray(1 << 30)\nx[::4096] = bytes(len(x) // 4096)\n");
    const bool killed = ran.signaled;                                       // by the cgroup
    const bool refused = ran.err.find("MemoryError") != std::string::npos;  // by RLIMIT_DATA
    CHECK((killed || refused));
}

TEST_CASE("what no session can do without cannot be waived, and unknown names are refused") {
    for (const char* name :
         {"user_namespace", "root_filesystem", "capabilities", "kill", "nonsense", ""}) {
        Policy policy = test_policy();
        policy.allow_degraded.insert(name);
        const auto made = sandbox::Sandbox::create(policy);
        INFO(name);
        REQUIRE(made.has_error());
        CHECK(made.error().code() == ErrorCode::kInvalidArgument);
    }
}

}  // namespace cellkeep::test
