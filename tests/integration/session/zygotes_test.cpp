// SPDX-License-Identifier: Apache-2.0
//
// A service whose interpreters are forks of a zygote. What a session sees of it is tested in
// tests/integration/server/test_zygotes.py.
#include "tests/integration/session/session_fixture.hpp"
#include "tests/support/execution_texts.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <set>
#include <string>
#include <utility>

using cellkeep::session::ServiceConfig;
using cellkeep::session::SessionOptions;
using cellkeep::test::result_of;
using cellkeep::test::ServiceFixture;

namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr const char* kIsWarm = "'pandas' in __import__('sys').modules";

/// Opens one session after the other until the expression is True in one.
std::shared_ptr<cellkeep::session::Session> open_until(
    ServiceFixture& fixture, const std::string& expression) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (true) {
        const auto session = fixture.open();
        if (result_of(fixture.execute(*session, expression))["text/plain"] == "True") {
            return session;
        }
        REQUIRE(fixture.service.remove(session->id()).has_value());
        REQUIRE(std::chrono::steady_clock::now() < deadline);
    }
}

}  // namespace

TEST_CASE("a zygote serves a bounded number of sessions, and then another one does", "[session]") {
    ServiceConfig config = cellkeep::test::service_config();
    config.zygotes = true;
    SECTION("many forks") {
        config.zygote_bounds.forks = 2;
    }
    SECTION("a long time") {
        config.zygote_bounds.age = std::chrono::milliseconds(1);
    }
    ServiceFixture fixture(std::move(config));
    const auto first = open_until(fixture, kIsWarm);
    const std::string seed =
        result_of(fixture.execute(*first, "hash('cellkeep')"))["text/plain"].get<std::string>();
    // Forks of one zygote have its seed. Forks of the next do not, and forks of the first go on.
    const auto later =
        open_until(fixture, std::string(kIsWarm) + " and hash('cellkeep') != " + seed);
    CHECK(result_of(fixture.execute(*first, "1 + 1"))["text/plain"] == "2");
    CHECK(result_of(fixture.execute(*later, "1 + 1"))["text/plain"] == "2");
}

TEST_CASE(
    "a server ends while it makes a zygote, and while it makes a sandbox by one", "[session]") {
    ServiceConfig config = cellkeep::test::service_config();
    config.zygotes = true;
    config.prespawn = {{2, {}}};
    ServiceFixture fixture(std::move(config));
    SECTION("at once") {}
    SECTION("when there is one spare") {
        fixture.run_until([&] { return fixture.service.spares() >= 1; });
    }
}
