// SPDX-License-Identifier: Apache-2.0
//
// Sessions that were made before anybody asked for them.
#include "tests/integration/session/session_fixture.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

using cellkeep::ErrorCode;
using cellkeep::session::ServiceConfig;
using cellkeep::session::SessionOptions;
using cellkeep::test::RecordingClient;
using cellkeep::test::ServiceFixture;
using namespace std::chrono_literals;

namespace {

ServiceConfig with_spares(std::size_t count) {
    ServiceConfig config = cellkeep::test::service_config();
    config.prespawn.count = count;
    return config;
}

}  // namespace

TEST_CASE("a spare is handed out with its new owner's wishes and replaced", "[session]") {
    ServiceFixture fixture(with_spares(1));
    fixture.run_until([&] { return fixture.service.spares() == 1; });
    CHECK(fixture.service.list().empty());
    SessionOptions options;
    options.kernel_id = "0b9d4f0e-6f0e-4a39-9f6c-1f2e3d4c5b6a";
    options.working_directory = "notebooks";
    options.env = {{"KERNEL_USERNAME", "ada"}, {"TZ", "Asia/Tokyo"}};
    options.files = {{"notebooks/data.txt", "42"}};
    options.limits.wall = 5000ms;
    options.metadata = {{"name", "mine"}};
    options.owner = "ada";
    const auto session = fixture.open(options);
    CHECK(fixture.service.spares() == 0);
    CHECK(fixture.service.find(options.kernel_id) == session);
    const auto info = session->info();
    CHECK(info.owner == "ada");
    CHECK(info.metadata["name"] == "mine");
    CHECK(info.limits.wall == 5000ms);
    const char* const code =
        "import os, time\n"
        "print(os.environ['KERNEL_USERNAME'], time.tzname[0], os.getcwd(), "
        "open('data.txt').read())";
    const auto first = fixture.execute(*session, code);
    CHECK(first.stdout_text == "ada JST /workspace/notebooks 42\n");
    CHECK(first.execution_count == 1);
    REQUIRE(fixture.run(session->restart()).has_value());
    CHECK(fixture.execute(*session, code).stdout_text == first.stdout_text);
    fixture.run_until([&] { return fixture.service.spares() == 1; });
    CHECK(fixture.service.list().size() == 1);
    const auto next = fixture.open();
    CHECK(
        fixture.execute(*next, "import os; 'KERNEL_USERNAME' in os.environ").result["text/plain"] ==
        "False");
}

TEST_CASE("whom no spare fits gets a session of his own", "[session]") {
    ServiceFixture fixture(with_spares(1));
    fixture.run_until([&] { return fixture.service.spares() == 1; });
    SessionOptions options;
    options.limits.memory_mb = 300;
    const auto other = fixture.open(options);
    CHECK(fixture.service.spares() == 1);
    SessionOptions fresh;
    fresh.env = {{"PYTHONHASHSEED", "0"}};
    const auto seeded = fixture.open(fresh);
    CHECK(fixture.service.spares() == 1);
}

TEST_CASE("spares give way when the server is full", "[session]") {
    ServiceConfig config = with_spares(5);
    config.sessions_max = 3;
    ServiceFixture fixture(std::move(config));
    // A place is always left for somebody.
    fixture.run_until([&] { return fixture.service.spares() == 2; });
    SessionOptions options;
    options.limits.memory_mb = 300;  // fits none
    std::vector<std::shared_ptr<cellkeep::session::Session>> open;
    for (int i = 0; i < 3; ++i) {
        open.push_back(fixture.open(options));
    }
    CHECK(fixture.service.spares() == 0);
    CHECK(fixture.service.list().size() == 3);
    const auto refused = fixture.run(fixture.service.create(options));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    REQUIRE(fixture.service.remove(open[0]->id()).has_value());
    REQUIRE(fixture.service.remove(open[1]->id()).has_value());
    fixture.run_until([&] { return fixture.service.spares() == 1; });
}

TEST_CASE("what a spare cannot be given is its caller's error, and costs one spare", "[session]") {
    ServiceFixture fixture(with_spares(1));
    fixture.run_until([&] { return fixture.service.spares() == 1; });
    SessionOptions options;
    options.files = {{"../etc/passwd", "x"}};
    const auto refused = fixture.run(fixture.service.create(options));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
    CHECK(fixture.service.list().empty());
    fixture.run_until([&] { return fixture.service.spares() == 1; });
}

TEST_CASE("a server ends while it makes a spare", "[session]") {
    ServiceFixture fixture(with_spares(2));
    fixture.run_until([&] { return fixture.service.spares() == 1; });
}
