// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/environment_arrivals.hpp"

#include "kernel-manager/languages/named_environments.hpp"
#include "tests/unit/environments/environments_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {
namespace {

constexpr std::chrono::seconds kArrivalPatience{60};

struct ArrivalsFixture {
    ArrivalsFixture() {
        KernelSpec spec;
        spec.language = "python";
        python = spec;
    }

    void begin() {
        auto store = environments::EnvironmentStore::open(environments.store.directory());
        REQUIRE(store.has_value());
        auto made = EnvironmentArrivals::create(
            *io,
            std::move(store).value(),
            {.python = [this] { return python; },
             .offered = [this] { return offered; },
             .offer =
                 [this](KernelSpec spec) {
                     specs.push_back(spec);
                     if (has_room) {
                         offered.push_back(offered_by(spec));
                     }
                     return has_room;
                 },
             .log = [this](const std::string& line) { lines.push_back(line); }});
        REQUIRE(made.has_value());
        arrivals = std::move(made).value();
        arrivals->begin();
    }
    void run_until(const std::function<bool()>& is_so) const {
        const auto deadline = std::chrono::steady_clock::now() + kArrivalPatience;
        while (!is_so() && std::chrono::steady_clock::now() < deadline) {
            (void)io->run_one_until(deadline);
        }
        REQUIRE(is_so());
    }
    bool has(const std::string& kernel) const {
        return std::find(offered.begin(), offered.end(), kernel) != offered.end();
    }
    void damage(const std::string& name) {
        const std::string file = environments.packages(name) + "/alpha/__init__.py";
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
        std::ofstream(file) << "VERSION = 'changed'\n";
    }

    test::EnvironmentsFixture environments;
    std::optional<KernelSpec> python;
    bool has_room = true;
    std::vector<std::string> offered{"python"};
    std::vector<KernelSpec> specs;
    std::vector<std::string> lines;
    std::unique_ptr<boost::asio::io_context> io = std::make_unique<boost::asio::io_context>(1);
    std::shared_ptr<EnvironmentArrivals> arrivals;
};

TEST_CASE("an environment that is made is offered, and once", "[session][environments]") {
    ArrivalsFixture fixture;
    (void)fixture.environments.create("before", "alpha==1.0\n");
    fixture.begin();
    fixture.run_until([&] { return fixture.has("python3-before"); });
    const auto record = fixture.environments.create("geo", "alpha==1.1\n");
    fixture.run_until([&] { return fixture.has("python3-geo"); });
    REQUIRE(fixture.specs.size() == 2);
    CHECK(fixture.specs[1].environment.name == "geo");
    CHECK(fixture.specs[1].environment.digest == record.digest);
    CHECK(fixture.specs[1].leases.size() == 1);  // its files stay
    CHECK(
        fixture.lines ==
        std::vector<std::string>{
            "the environment before is offered", "the environment geo is offered"});
    fixture.arrivals->stop();
}

TEST_CASE("what is offered already is not looked at", "[session][environments]") {
    ArrivalsFixture fixture;
    (void)fixture.environments.create("one", "alpha==1.0\n");
    fixture.offered.emplace_back("python3-one");
    fixture.begin();
    (void)fixture.environments.create("two", "alpha==1.1\n");
    fixture.run_until([&] { return fixture.has("python3-two"); });
    CHECK(fixture.specs.size() == 1);
    fixture.arrivals->stop();
}

TEST_CASE("a damaged environment is not offered, which is said once", "[session][environments]") {
    ArrivalsFixture fixture;
    (void)fixture.environments.create("bad", "alpha==1.0\n");
    fixture.damage("bad");
    fixture.begin();
    fixture.run_until([&] { return !fixture.lines.empty(); });
    CHECK(fixture.lines[0].starts_with("the environment bad is not offered: "));
    (void)fixture.environments.create("good", "alpha==1.1\n");
    fixture.run_until([&] { return fixture.has("python3-good"); });
    CHECK(fixture.lines.size() == 2);
    CHECK_FALSE(fixture.has("python3-bad"));
    SECTION("made again it is another one") {
        REQUIRE(fixture.environments.store.remove("bad").has_value());
        (void)fixture.environments.create("bad", "alpha==1.2\n");
        fixture.run_until([&] { return fixture.has("python3-bad"); });
    }
    fixture.arrivals->stop();
}

TEST_CASE("without a Python nothing is offered, and then all", "[session][environments]") {
    ArrivalsFixture fixture;
    const std::optional<KernelSpec> python = std::exchange(fixture.python, std::nullopt);
    (void)fixture.environments.create("geo", "alpha==1.0\n");
    fixture.begin();
    (void)fixture.io->poll();
    CHECK(fixture.specs.empty());
    fixture.python = python;
    fixture.arrivals->look_again();
    fixture.run_until([&] { return fixture.has("python3-geo"); });
    fixture.arrivals->stop();
}

TEST_CASE("the log names an environment for which there is no room", "[session][environments]") {
    ArrivalsFixture fixture;
    fixture.has_room = false;
    (void)fixture.environments.create("geo", "alpha==1.0\n");
    fixture.begin();
    fixture.run_until([&] { return !fixture.lines.empty(); });
    CHECK(
        fixture.lines[0] == "the environment geo is not offered: the sessions have no room for it");
    fixture.arrivals->stop();
}

TEST_CASE("after its end a watch offers nothing", "[session][environments]") {
    ArrivalsFixture fixture;
    fixture.begin();
    (void)fixture.io->poll();
    fixture.arrivals->stop();
    (void)fixture.environments.create("geo", "alpha==1.0\n");
    fixture.io->restart();
    (void)fixture.io->run();  // ends: nothing waits
    CHECK(fixture.specs.empty());
}

}  // namespace
}  // namespace cellkeep::session
