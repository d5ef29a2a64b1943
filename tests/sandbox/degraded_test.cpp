// SPDX-License-Identifier: Apache-2.0
//
// A server that cannot apply a control refuses the session by name, unless the operator accepts it.
// The missing controls depend on the user who runs the tests; run_unprivileged.sh runs them without
// cgroups.
#include "protocol/support/syscall.hpp"
#include "sandbox/host_features.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

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

TEST_CASE("under a masked /proc, as in a container, a session is refused or has no /proc") {
    if (::geteuid() != 0) {
        return;  // Masking takes root.
    }
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        // No REQUIRE in here: each exit code is a claim that failed.
        if (::unshare(CLONE_NEWNS) < 0 ||
            ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0 ||
            ::mount("none", "/proc/sys", "tmpfs", 0, nullptr) < 0) {
            ::_exit(1);
        }
        Policy policy = test_policy();
        const auto refused = sandbox::Sandbox::create(policy);
        if (!refused.has_error() ||
            refused.error().message().find("control proc: mount /proc") == std::string::npos ||
            refused.error().hint().find("--allow-degraded=proc") == std::string::npos) {
            ::_exit(2);
        }
        policy.allow_degraded = {"proc", "nested_user_namespaces", "private_image"};
        auto accepted = sandbox::Sandbox::create(policy);
        if (accepted.has_error() || accepted.value().isolation().complete()) {
            ::_exit(3);
        }
        ::_exit(run_inside(accepted.value(), {"/usr/bin/ls", "/proc"}).out.empty() ? 0 : 4);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("where user namespaces are used up, the session is refused with the sysctl to raise") {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        // In a user namespace of its own, so that the host's limit stays.
        if (::unshare(CLONE_NEWUSER) < 0 ||
            write_control_file("/proc/sys/user/max_user_namespaces", "0").has_error()) {
            ::_exit(77);
        }
        Policy policy = test_policy();
        for (const char* name :
             {"memory_limit", "process_limit", "cpu_limit", "cpu_accounting", "freeze"}) {
            policy.allow_degraded.insert(name);
        }
        const auto refused = sandbox::Sandbox::create(policy);
        ::_exit(
            refused.has_error() && refused.error().code() == ErrorCode::kUnavailable &&
                    refused.error().message().find("control user_namespace") != std::string::npos &&
                    refused.error().hint().find("user.max_user_namespaces") != std::string::npos
                ? 0
                : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
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
