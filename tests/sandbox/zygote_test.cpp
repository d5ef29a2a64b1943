// SPDX-License-Identifier: Apache-2.0
//
// Sandboxes made by a zygote. That they are locked down like every other is shown by running all
// other tests with them (CMakeLists.txt).
#include "sandbox/server/zygote.hpp"

#include "sandbox/policy/host_mode.hpp"
#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <sched.h>

#include <chrono>
#include <set>
#include <string>
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

Error error_of(sandbox::ZygoteSpec spec) {
    auto started = Zygote::start(std::move(spec));
    REQUIRE(started.has_error());
    return std::move(started).error();
}

}  // namespace

TEST_CASE("a zygote's sandbox has warm workers, and ordinary ones") {
    const auto zygote = make_zygote();
    auto sandbox = make_by(zygote);
    CHECK(sandbox.is_warm());
    CHECK(probe_inside(sandbox, {"kill", "1"}) == "ok");
    CHECK(probe_inside(sandbox, {"unshare", std::to_string(CLONE_NEWUSER)}) == "EPERM");
    const Ran ran = run_inside(sandbox, {"/usr/bin/sh", "-c", "echo out; exit 7"});
    CHECK(ran.out == "out\n");
    CHECK(ran.status == 7);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a zygote makes many sandboxes, each with namespaces of its own") {
    const auto zygote = make_zygote();
    std::vector<Sandbox> all;
    std::set<std::string> seen;
    for (int i = 0; i < 8; ++i) {
        all.push_back(make_by(zygote));
        for (const char* space : {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"}) {
            const Ran ran = run_inside(
                all.back(), {"/usr/bin/readlink", "/proc/self/ns/" + std::string(space)});
            CHECK(seen.insert(ran.out).second);
        }
    }
    for (Sandbox& one : all) {
        require_ok(one.destroy(kPatience));
    }
}

TEST_CASE("the zygote program's signal handlers hold in its workers, and not in pid 1") {
    const auto zygote = make_zygote();
    auto sandbox = make_by(zygote);
    CHECK(probe_inside(sandbox, {"raise_usr1"}) == "handled");
    // If pid 1 had a handler, it would get the signal from inside (pid_namespaces(7)).
    CHECK(run_inside(sandbox, {"/usr/bin/sh", "-c", "kill -USR1 1"}).status == 0);
    CHECK(probe_inside(sandbox, {"raise_usr1"}) == "handled");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("the end of a zygote's process does not end its sandboxes") {
    const auto zygote = make_zygote();
    auto sandbox = make_by(zygote);
    CHECK(zygote->alive());
    zygote->retire();
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (zygote->alive()) {
        REQUIRE(std::chrono::steady_clock::now() < deadline);
    }
    CHECK(probe_inside(sandbox, {"raise_usr1"}) == "handled");
    auto none = Sandbox::create(test_policy(), zygote);
    REQUIRE(none.has_error());
    CHECK(none.error().code() == ErrorCode::kUnavailable);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a sandbox outlives the last other reference to its zygote") {
    auto zygote = make_zygote();
    auto sandbox = make_by(zygote);
    zygote.reset();
    CHECK(probe_inside(sandbox, {"raise_usr1"}) == "handled");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a zygote covers the policies that its namespaces can hold, and no other") {
    const auto zygote = make_zygote();
    CHECK(zygote->covers(test_policy()));
    const auto covers = [&](auto change) {
        Policy policy = test_policy();
        change(policy);
        const bool covered = zygote->covers(policy);
        CHECK(Sandbox::create(policy, zygote).has_value() == covered);
        return covered;
    };
    CHECK(covers([](Policy& policy) { policy.limits.memory_bytes /= 2; }));
    CHECK(covers([](Policy& policy) { policy.hostname = "other"; }));
    CHECK_FALSE(covers([](Policy& policy) { policy.read_only.pop_back(); }));
    CHECK_FALSE(covers([](Policy& policy) { policy.read_only[0].executable = false; }));
    CHECK_FALSE(covers([](Policy& policy) {
        policy.read_only.push_back({"/etc/hostname", "/opt/data", false, true});
    }));
    CHECK_FALSE(covers([](Policy& policy) { policy.inputs.push_back({"/etc/hostname", "in"}); }));
    CHECK_FALSE(covers([](Policy& policy) { policy.zygote = {kSessionUid, 256}; }));
    if (sandbox::run_mode() == sandbox::RunMode::kRoot) {
        CHECK_FALSE(covers([](Policy& policy) { policy.host_uid = kSessionUid - 1; }));
        CHECK_FALSE(covers([](Policy& policy) { policy.host_gid = kSessionUid + 256; }));
        CHECK(
            covers([](Policy& policy) { policy.host_uid = policy.host_gid = kSessionUid + 255; }));
    }
}

TEST_CASE("a program that cannot be forked, or is not ready, is refused as a zygote") {
    const Error threads = error_of(zygote_spec(test_policy(), "threads"));
    CHECK(threads.code() == ErrorCode::kUnavailable);
    CHECK_THAT(threads.message(), Catch::Contains("2 threads"));
    const Error files = error_of(zygote_spec(test_policy(), "files"));
    CHECK(files.code() == ErrorCode::kUnavailable);
    CHECK_THAT(files.message(), Catch::Contains("1 files open"));
    const Error memory = error_of(zygote_spec(test_policy(), "memory"));
    CHECK(memory.code() == ErrorCode::kUnavailable);
    CHECK_THAT(memory.message(), Catch::Contains("1 mappings"));
    CHECK(error_of(zygote_spec(test_policy(), "ends")).code() == ErrorCode::kUnavailable);
    auto late = zygote_spec(test_policy(), "waits");
    late.patience = std::chrono::milliseconds(50);
    CHECK(error_of(std::move(late)).code() == ErrorCode::kTimeout);
    auto unwanted = zygote_spec(test_policy(), "waits");
    unwanted.given_up = [] { return true; };
    CHECK(error_of(std::move(unwanted)).code() == ErrorCode::kCancelled);
    auto plain = zygote_spec(test_policy(), "");
    plain.policy.zygote.reset();
    CHECK(error_of(std::move(plain)).code() == ErrorCode::kInvalidArgument);
    CHECK_FALSE(has_children());
}

TEST_CASE("ids that a zygote's namespace cannot hold are refused") {
    if (sandbox::run_mode() != sandbox::RunMode::kRoot) {
        return;  // An ordinary user has one id.
    }
    for (const sandbox::ZygotePolicy ids :
         {sandbox::ZygotePolicy{0, 100'000},
          sandbox::ZygotePolicy{kSessionUid, 0},
          sandbox::ZygotePolicy{kSessionUid + 201, 256},
          sandbox::ZygotePolicy{kSessionUid, ~0U}}) {
        auto spec = zygote_spec(test_policy(), "");
        spec.policy.zygote = ids;
        CHECK(error_of(std::move(spec)).code() == ErrorCode::kInvalidArgument);
    }
}

TEST_CASE("no worker is warm in a sandbox that no zygote has made") {
    auto made = Sandbox::create(test_policy());
    REQUIRE(made.has_value());
    Sandbox& sandbox = made.value();
    CHECK_FALSE(sandbox.is_warm());
    auto spec = zygote_spec(test_policy(), "").program;
    spec.warm = true;
    auto refused = sandbox.start(std::move(spec));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
    require_ok(sandbox.destroy(kPatience));
}

}  // namespace cellkeep::test
