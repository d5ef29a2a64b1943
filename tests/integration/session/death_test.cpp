// SPDX-License-Identifier: Apache-2.0
#include "protocol/limits.hpp"
#include "tests/integration/session/session_fixture.hpp"
#include "tests/support/execution_texts.hpp"

#include <catch2/catch.hpp>

#include <chrono>

using cellkeep::session::Death;
using cellkeep::session::ExecutionStatus;
using cellkeep::session::KernelState;
using cellkeep::session::SessionOptions;
using cellkeep::test::result_of;
using cellkeep::test::ServiceFixture;

TEST_CASE(
    "a crash is reported with its signal, and a fresh interpreter finds the files", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    fixture.execute(*session, "open('kept.txt', 'w').write('x'); gone = 1");
    const auto result = fixture.execute(*session, "import ctypes; ctypes.string_at(0)");
    CHECK(result.status == ExecutionStatus::kDead);
    REQUIRE(result.death.has_value());
    CHECK(to_string(*result.death) == "signal(11)");
    CHECK_FALSE(result.state_kept);
    REQUIRE(fixture.run(session->restart()).has_value());
    CHECK(result_of(fixture.execute(*session, "open('kept.txt').read()"))["text/plain"] == "'x'");
    CHECK(fixture.execute(*session, "gone").error->name == "NameError");
}

TEST_CASE("an exit of the process is reported with its code", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto result = fixture.execute(*session, "import os; os._exit(3)");
    CHECK(result.status == ExecutionStatus::kDead);
    CHECK(to_string(result.death.value()) == "exited(3)");
    CHECK(fixture.execute(*session, "1").status == ExecutionStatus::kOk);
}

TEST_CASE("memory past the limit answers oom, and a neighbour does not notice", "[session]") {
    ServiceFixture fixture;
    const auto neighbour = fixture.open();
    fixture.execute(*neighbour, "mine = list(range(1000))");
    SessionOptions options;
    options.limits.memory_mb = 256;
    const auto session = fixture.open(options);
    const auto result = fixture.execute(
        *session, "big = bytearray(10 << 30)\nfor i in range(0, len(big), 4096): big[i] = 1");
    CHECK(result.status == ExecutionStatus::kOom);
    CHECK(result.error->kind == "oom");
    CHECK(fixture.execute(*session, "'again'").status == ExecutionStatus::kOk);
    CHECK(result_of(fixture.execute(*neighbour, "len(mine)"))["text/plain"] == "1000");
    CHECK(neighbour->info().restarts == 0);
}

TEST_CASE(
    "a restart gives a fresh interpreter and ends what the old one left running", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    fixture.execute(
        *session,
        "import subprocess; p = subprocess.Popen(['sleep', '1000'], start_new_session=True)");
    REQUIRE(fixture.run(session->restart()).has_value());
    CHECK(session->info().state == KernelState::kIdle);
    CHECK(result_of(fixture.execute(*session, "'p' in globals()"))["text/plain"] == "False");
    const auto left = fixture.execute(
        *session,
        "import glob\n"
        "[p for p in glob.glob('/proc/[0-9]*/cmdline') if b'sleep' in open(p, 'rb').read()]");
    CHECK(result_of(left)["text/plain"] == "[]");
}

TEST_CASE(
    "an interpreter that keeps dying stays dead in the end, and restart revives it", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    for (std::size_t i = 0; i < cellkeep::limits::kRestartsMax; ++i) {
        REQUIRE(
            fixture.execute(*session, "import os; os._exit(1)").status == ExecutionStatus::kDead);
    }
    REQUIRE(session->info().restarts == cellkeep::limits::kRestartsMax);
    CHECK(fixture.execute(*session, "import os; os._exit(1)").status == ExecutionStatus::kDead);
    CHECK(session->info().state == KernelState::kDead);
    const auto refused = fixture.run(session->execute(cellkeep::session::ExecutionRequest()));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == cellkeep::ErrorCode::kConflict);
    REQUIRE(fixture.run(session->restart()).has_value());
    CHECK(result_of(fixture.execute(*session, "2 + 2"))["text/plain"] == "4");
}

TEST_CASE("code that closes the kernel's link is stopped after its grace", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto result = fixture.execute(*session, "import os, time; os.close(3); time.sleep(25)");
    CHECK(result.status == ExecutionStatus::kDead);
    CHECK(to_string(result.death.value()) == "link_broken");
    CHECK(result.metrics.wall >= cellkeep::limits::kLinkClosedGrace);
    CHECK(result.metrics.wall < std::chrono::seconds(25));  // the code would sleep as long
    CHECK(fixture.execute(*session, "'again'").status == ExecutionStatus::kOk);
}

TEST_CASE("code that writes garbage into the kernel's link is stopped", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto result =
        fixture.execute(*session, "import os, time; os.write(3, b'\\xff' * 64); time.sleep(25)");
    CHECK(result.status == ExecutionStatus::kDead);
    CHECK(to_string(result.death.value()) == "link_broken");
    CHECK(fixture.execute(*session, "'again'").status == ExecutionStatus::kOk);
}
