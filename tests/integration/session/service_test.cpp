// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.hpp"
#include "tests/integration/session/session_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

using cellkeep::Error;
using cellkeep::ErrorCode;
using cellkeep::Status;
using cellkeep::session::Session;
using cellkeep::session::SessionListener;
using cellkeep::session::SessionOptions;
using cellkeep::test::ServiceFixture;
using cellkeep::test::text_file;
using namespace std::chrono_literals;

namespace {

class Listener final : public SessionListener {
 public:
    Status on_session_created(const std::shared_ptr<Session>& session) override {
        if (refuse) {
            return Error(ErrorCode::kSystem, "no");
        }
        created.push_back(session->id());
        return cellkeep::ok();
    }
    void on_session_closed(const std::string& session_id) override { closed.push_back(session_id); }

    std::vector<std::string> created;
    std::vector<std::string> closed;
    bool refuse = false;
};

}  // namespace

TEST_CASE("sessions are found by either id, listed oldest first, and removed", "[session]") {
    Listener listener;  // outlives the service's sessions
    ServiceFixture fixture;
    fixture.service.add_listener(&listener);
    const auto one = fixture.open();
    const auto two = fixture.open();
    CHECK(fixture.service.find(one->id()) == one);
    CHECK(fixture.service.find(one->info().kernel_id) == one);
    CHECK(fixture.service.find("ses_none") == nullptr);
    REQUIRE(fixture.service.list().size() == 2);
    CHECK(fixture.service.list()[0] == one);
    CHECK(fixture.service.remove(one->id()).has_value());
    CHECK(fixture.service.remove(one->id()).error().code() == ErrorCode::kNotFound);
    CHECK(listener.created == std::vector{one->id(), two->id()});
    CHECK(listener.closed == std::vector{one->id()});
    CHECK(one->workspace().has_error());
}

TEST_CASE("the limit on sessions is exact, also for a burst", "[session]") {
    auto config = cellkeep::test::service_config();
    config.sessions_max = 2;
    ServiceFixture fixture(std::move(config));
    std::array<std::optional<cellkeep::Result<std::shared_ptr<Session>>>, 4> results;
    for (auto& result : results) {
        fixture.spawn(fixture.service.create({}), result);
    }
    fixture.run_until([&] {
        return std::all_of(
            results.begin(), results.end(), [](auto& one) { return one.has_value(); });
    });
    int made = 0;
    int full = 0;
    for (const auto& result : results) {
        made += result->has_value() ? 1 : 0;
        full += result->has_error() && result->error().code() == ErrorCode::kLimitExceeded ? 1 : 0;
    }
    CHECK(made == 2);
    CHECK(full == 2);
    REQUIRE(fixture.service.remove(fixture.service.list()[0]->id()).has_value());
    fixture.open();
}

TEST_CASE("a request for something that is not offered is refused by name", "[session]") {
    ServiceFixture fixture;
    SessionOptions options;
    std::string named;
    SECTION("an unknown language") {
        options.language = "cobol";
        named = "language";
    }
    SECTION("an unknown environment") {
        options.environment = "none-such";
        named = "environment";
    }
    SECTION("too little memory") {
        options.limits.memory_mb = 63;
        named = "memory_mb";
    }
    SECTION("too much memory") {
        options.limits.memory_mb = 65'537;
        named = "memory_mb";
    }
    SECTION("no processor") {
        options.limits.cpu_cores = 0;
        named = "cpu_cores";
    }
    SECTION("no time") {
        options.limits.wall = 0ms;
        named = "wall_ms";
    }
    SECTION("an absolute path") {
        options.files = {text_file("/etc/passwd", "")};
        named = "path";
    }
    const auto refused = fixture.run(fixture.service.create(options));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(refused.error().message(), Catch::Contains(named));
    CHECK(fixture.service.list().empty());
    fixture.open();
}

TEST_CASE("a listener that fails refuses the session, and nothing of it is left", "[session]") {
    Listener listener;  // outlives the service's sessions
    ServiceFixture fixture;
    listener.refuse = true;
    fixture.service.add_listener(&listener);
    CHECK(fixture.run(fixture.service.create({})).has_error());
    CHECK(fixture.service.list().empty());
    listener.refuse = false;
    fixture.open();
}

TEST_CASE("an idle session is culled, a used one is not", "[session]") {
    ServiceFixture fixture;
    SessionOptions options;
    options.limits.idle = 1s;
    const auto idle = fixture.open(options);
    const auto busy = fixture.open();
    fixture.run_until([&] { return fixture.service.find(idle->id()) == nullptr; });
    CHECK(fixture.service.find(busy->id()) != nullptr);
}

TEST_CASE("a session's own variables reach its environment and the server's do not", "[session]") {
    ServiceFixture fixture;
    REQUIRE(::setenv("CELLKEEP_TEST_SECRET", "s3cret", 1) == 0);
    SessionOptions options;
    options.env = {{"TZ", "Asia/Tokyo"}, {"LANG", "C"}};
    const auto session = fixture.open(options);
    const auto result = fixture.execute(
        *session,
        "import os, time\n"
        "print(os.environ['TZ'], time.tzname[0], os.environ['LANG'], "
        "'CELLKEEP_TEST_SECRET' in os.environ)");
    CHECK(result.stdout_text == "Asia/Tokyo JST C False\n");
}

TEST_CASE("an environment without an interpreter is a failed start that says so", "[session]") {
    auto config = cellkeep::test::service_config();
    auto broken = *config.catalog.find("python");
    broken.argv = {"/usr/bin/false"};
    config.catalog.add(broken);
    ServiceFixture fixture(std::move(config));
    const auto refused = fixture.run(fixture.service.create({}));
    REQUIRE(refused.has_error());
    CHECK_THAT(refused.error().message(), Catch::Contains("exit code 1"));
    CHECK(fixture.service.list().empty());
}
