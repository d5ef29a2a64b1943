// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_kernel.hpp"

#include "kernel-manager/limits/limits.hpp"
#include "tests/unit/session/kernel_fixture.hpp"

#include <sys/mman.h>

#include <optional>
#include <string>
#include <utility>

namespace cellkeep::session {
namespace {

using nlohmann::json;
using test::KernelFixture;
using test::Names;

PassedInterpreter any_interpreter() {
    const auto file = [] { return UniqueFd(::memfd_create("any", MFD_CLOEXEC)); };
    return {9, file(), file(), file(), file()};
}

/// Until no other interpreter follows.
void let_die(KernelFixture& fixture) {
    fixture.launch_ready();
    fixture.crash();
    while (fixture.kernel.state() != KernelState::kDead) {
        fixture.process().answer_info();
        fixture.crash();
    }
}

/// Nothing runs.
const SupervisedKernel::MakeRecorder kNoRecorder;

PassedKernel read(const json& text, PassedInterpreter interpreter) {
    return read_kernel(text, std::move(interpreter), [](const std::string&) { return nullptr; });
}

PassedKernel through_text(const PassedKernel& passed) {
    return read(json::from_cbor(json::to_cbor(write_kernel(passed))), {});
}

TEST_CASE("a kernel that is dead for good passes as that", "[session][passing]") {
    KernelFixture left;
    let_die(left);
    const std::uint64_t restarts = left.kernel.restarts();
    const std::string refusal = left.kernel.check_alive().error().message();
    REQUIRE(left.kernel.can_pass(true));
    const PassedKernel passed = left.kernel.pass_on();
    CHECK_FALSE(passed.process.interpreter.pidfd);
    CHECK_FALSE(left.kernel.can_pass(true));

    KernelFixture next;
    REQUIRE(next.kernel.go_on(through_text(passed), kNoRecorder).has_value());
    CHECK(next.kernel.state() == KernelState::kDead);
    REQUIRE(next.kernel.death().has_value());
    CHECK(to_string(*next.kernel.death()) == "exited(3)");
    CHECK(next.kernel.restarts() == restarts);
    CHECK(next.kernel.check_alive().error().message() == refusal);
    CHECK(next.orders.empty());
    CHECK(next.seen.take().empty());  // front ends have heard of it
    CHECK(next.reports.empty());
    next.submit();
    next.poll();
    CHECK(next.client->take() == Names{"execute_reply KernelDead"});
    REQUIRE(next.kernel.can_pass(true));  // and once more

    std::optional<Status> restarted;
    next.wait(next.kernel.restart(), restarted);
    CHECK(next.kernel.state() == KernelState::kRestarting);
    CHECK_FALSE(next.kernel.can_pass(true));
    REQUIRE(next.orders.size() == 1);
    next.process().answer_info();
    next.poll();
    REQUIRE(restarted.has_value());
    CHECK(restarted->has_value());
    CHECK(next.kernel.check_alive().has_value());
    CHECK_FALSE(next.kernel.death().has_value());
    CHECK(next.kernel.restarts() == restarts + 1);
}

TEST_CASE("deaths before a hand-over count after it", "[session][passing]") {
    KernelFixture left;
    let_die(left);
    KernelFixture next;
    REQUIRE(next.kernel.go_on(through_text(left.kernel.pass_on()), kNoRecorder).has_value());
    std::optional<Status> restarted;
    next.wait(next.kernel.restart(), restarted);
    // A restart that was asked for begins the count anew.
    for (std::size_t death = 0; death < limits::kRestartsMax; ++death) {
        next.process().answer_info();
        next.crash();
        CHECK(next.kernel.state() == KernelState::kRestarting);
    }
    next.process().answer_info();
    next.crash();
    CHECK(next.kernel.state() == KernelState::kDead);
}

TEST_CASE("a kernel does not pass while another interpreter is to come", "[session][passing]") {
    KernelFixture fixture;
    CHECK_FALSE(fixture.kernel.can_pass(true));  // it was not launched
    fixture.launch_ready();
    fixture.postpones = true;
    fixture.crash();
    CHECK_FALSE(fixture.kernel.can_pass(true));
    fixture.postpones = false;
    fixture.kernel.launch_or_die();
    CHECK_FALSE(fixture.kernel.can_pass(true));
    fixture.kernel.on_sandbox_died();
    CHECK(fixture.kernel.can_pass(true));
    fixture.kernel.close();
    CHECK_FALSE(fixture.kernel.can_pass(true));
}

TEST_CASE("an interpreter that is neither dead nor there is not taken", "[session][passing]") {
    KernelFixture fixture;
    let_die(fixture);
    const json dead = write_kernel(fixture.kernel.pass_on());
    json live = dead;
    live["death"] = json();
    CHECK(read(dead, {}).process.death.has_value());
    CHECK(read(live, any_interpreter()).process.interpreter.id == 9);
    live.erase("death");  // as a program of an older format writes it
    CHECK(read(live, any_interpreter()).process.interpreter.id == 9);
    CHECK_THROWS_AS(read(live, {}), json::exception);
    CHECK_THROWS_AS(read(dead, any_interpreter()), json::exception);
    live["info"] = json();
    CHECK_THROWS_AS(read(live, any_interpreter()), json::exception);
    json wrong = dead;
    SECTION("a kind below all") {
        wrong["death"]["kind"] = -1;
    }
    SECTION("a kind beyond all") {
        wrong["death"]["kind"] = static_cast<int>(Death::Kind::kLinkBroken) + 1;
    }
    SECTION("a kind that is a text") {
        wrong["death"]["kind"] = "exited";
    }
    SECTION("a death without its kind") {
        wrong["death"].erase("kind");
    }
    SECTION("a death without its number") {
        wrong["death"].erase("detail");
    }
    SECTION("a death that is a text") {
        wrong["death"] = "exited(3)";
    }
    CHECK_THROWS_AS(read(wrong, {}), json::exception);
}

}  // namespace
}  // namespace cellkeep::session
