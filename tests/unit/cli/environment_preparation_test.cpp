// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/preparing/environment_preparation.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace cellkeep::cli {
namespace {

using namespace std::chrono_literals;

struct PreparingFixture {
    boost::asio::io_context io;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
        io.get_executor()};  // loading happens on another thread
    std::vector<BuildProcess::Hooks> builds;
    std::vector<std::string> lines;
    std::optional<Error> start_failure;
    std::vector<Result<session::KernelCatalog>> loads;  // what each gives; the last one again
    std::size_t loaded = 0;
    std::optional<Result<session::KernelCatalog>> outcome;
    std::shared_ptr<EnvironmentPreparation> preparation = EnvironmentPreparation::create(
        io,
        {.start = [this](BuildProcess::Hooks hooks) -> Result<std::unique_ptr<BuildProcess>> {
             if (start_failure) {
                 return *start_failure;
             }
             builds.push_back(std::move(hooks));
             return std::unique_ptr<BuildProcess>();
         },
         .load = [this] { return loads[std::min(loaded++, loads.size() - 1)]; },
         .on_line = [this](const std::string& line) { lines.push_back(line); },
         .on_end = [this](Result<session::KernelCatalog> made) { note(std::move(made)); }});

    void note(Result<session::KernelCatalog> made) {
        REQUIRE_FALSE(outcome);
        outcome.emplace(std::move(made));
    }
    void run_until(const std::function<bool()>& done) {
        while (!done()) {
            REQUIRE(io.run_one_for(20s) == 1);
        }
    }
    void run_until_end() {
        run_until([this] { return outcome.has_value(); });
    }
};

TEST_CASE_METHOD(PreparingFixture, "what was made is loaded", "[cli][preparing]") {
    session::KernelCatalog catalog;
    session::KernelSpec spec;
    spec.language = "python";
    catalog.add(spec);
    loads = {catalog};
    preparation->begin();
    REQUIRE(builds.size() == 1);
    builds[0].on_line("copied 256 MiB");
    builds[0].on_end(ok());
    run_until_end();
    REQUIRE(outcome->has_value());
    CHECK(outcome->value().find("python") != nullptr);
    CHECK(lines == std::vector<std::string>{"copied 256 MiB"});
}

TEST_CASE_METHOD(PreparingFixture, "a build that was killed is begun again", "[cli][preparing]") {
    preparation->begin();
    for (int i = 0; i < kBuildsMost; ++i) {
        REQUIRE(builds.size() == static_cast<std::size_t>(i) + 1);
        CHECK_FALSE(outcome);
        builds.back().on_end(Error(ErrorCode::kCancelled, "signal 9"));
    }
    REQUIRE(outcome);
    REQUIRE(outcome->has_error());
    CHECK(builds.size() == static_cast<std::size_t>(kBuildsMost));
}

TEST_CASE_METHOD(PreparingFixture, "a build that failed is not", "[cli][preparing]") {
    preparation->begin();
    builds[0].on_line("cellkeep: no space left");
    builds[0].on_end(Error(ErrorCode::kUnavailable, "the image could not be made"));
    REQUIRE(outcome);
    REQUIRE(outcome->has_error());
    CHECK(outcome->error().message() == "cellkeep: no space left: the image could not be made");
    CHECK(builds.size() == 1);
}

TEST_CASE_METHOD(PreparingFixture, "a host that changes meanwhile", "[cli][preparing]") {
    loads = {Error(ErrorCode::kNotFound, "another one is needed")};
    preparation->begin();
    for (int i = 1; i < kBuildsMost; ++i) {
        builds.back().on_end(ok());
        run_until([&] { return builds.size() == static_cast<std::size_t>(i) + 1; });
        CHECK_FALSE(outcome);
    }
    SECTION("is tried a few times") {
        builds.back().on_end(ok());
        run_until_end();
        CHECK(outcome->has_error());
    }
    SECTION("and may come to rest") {
        loads = {session::KernelCatalog()};
        builds.back().on_end(ok());
        run_until_end();
        CHECK(outcome->has_value());
    }
    CHECK(builds.size() == static_cast<std::size_t>(kBuildsMost));
}

TEST_CASE_METHOD(PreparingFixture, "what cannot be loaded or begun is told", "[cli][preparing]") {
    SECTION("loaded") {
        loads = {Error(ErrorCode::kSystem, "mount")};
        preparation->begin();
        builds[0].on_end(ok());
        run_until_end();
    }
    SECTION("begun") {
        start_failure = Error(ErrorCode::kSystem, "spawn");
        preparation->begin();
    }
    REQUIRE(outcome);
    REQUIRE(outcome->has_error());
    CHECK(outcome->error().code() == ErrorCode::kSystem);
}

TEST_CASE_METHOD(PreparingFixture, "nothing is told after a stop", "[cli][preparing]") {
    loads = {session::KernelCatalog()};
    preparation->begin();
    preparation->stop();
    builds[0].on_line("late");
    builds[0].on_end(ok());
    (void)io.poll();
    CHECK(loaded == 0);
    CHECK_FALSE(outcome);
    CHECK(lines.empty());
}

}  // namespace
}  // namespace cellkeep::cli
