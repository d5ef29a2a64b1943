// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/environments/environments_fixture.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

namespace cellkeep::test {
namespace {

namespace fs = std::filesystem;

std::size_t images_in(const EnvironmentsFixture& fixture) {
    std::size_t images = 0;
    for (const auto& entry : fs::directory_iterator(fixture.directory + "/images")) {
        images += entry.is_directory() ? 1U : 0U;
    }
    return images;
}

TEST_CASE("an environment that is made again takes its place", "[environments][store]") {
    EnvironmentsFixture fixture;
    const auto no_news = [](const std::string&) {};
    const auto former = fixture.create("geo", "alpha==1.0\n");
    CHECK(
        fixture.store.replace(fixture.order("other", "alpha==1.1"), no_news).error().code() ==
        ErrorCode::kNotFound);
    // What fails leaves the former one.
    for (const char* bad : {"-e .", "conflict==1"}) {
        CHECK(fixture.store.replace(fixture.order("geo", bad), no_news).has_error());
        CHECK(text_of(fixture.packages("geo") + "/alpha/__init__.py") == "VERSION = '1.0'\n");
    }
    {
        const auto used = fixture.store.use(fixture.store.find("geo").value());
        REQUIRE(used.has_value());
        const auto refused = fixture.store.replace(fixture.order("geo", "alpha==1.1"), no_news);
        CHECK(refused.error().code() == ErrorCode::kConflict);
    }
    const auto made = fixture.store.replace(fixture.order("geo", "alpha==1.1"), no_news);
    REQUIRE(made.has_value());
    CHECK(made.value().digest != former.digest);
    CHECK(text_of(fixture.packages("geo") + "/alpha/__init__.py") == "VERSION = '1.1'\n");
    CHECK(images_in(fixture) == 1);
    CHECK(fixture.left_over() == 0);
    // The same once more is the same image; another name keeps its own.
    (void)fixture.create("two", "alpha==1.1\n");
    CHECK(
        fixture.store.replace(fixture.order("geo", "alpha==1.1"), no_news).value().digest ==
        made.value().digest);
    CHECK(images_in(fixture) == 1);
    REQUIRE(fixture.store.replace(fixture.order("geo", "alpha==1.2"), no_news).has_value());
    CHECK(text_of(fixture.packages("two") + "/alpha/__init__.py") == "VERSION = '1.1'\n");
    CHECK(images_in(fixture) == 2);
}

TEST_CASE("what another process has made meanwhile is not overwritten", "[environments][store]") {
    EnvironmentsFixture fixture;
    const auto no_news = [](const std::string&) {};
    const auto former = fixture.create("geo", "alpha==1.0\n");
    auto order = fixture.order("geo", "alpha==1.1");
    order.replaces = "2026-01-01T00:00:00.000Z";
    CHECK(fixture.store.replace(order, no_news).error().code() == ErrorCode::kConflict);
    order.replaces = former.created_at;
    CHECK(fixture.store.replace(order, no_news).has_value());
}

TEST_CASE("no image goes while a record cannot be read", "[environments][store]") {
    EnvironmentsFixture fixture;
    (void)fixture.create("geo", "alpha==1.0\n");
    const std::string record = fixture.directory + "/names/geo.json";
    const std::string text = text_of(record);
    std::ofstream(record) << "of a later version";
    (void)fixture.create("other", "alpha==1.1\n");
    CHECK(images_in(fixture) == 2);
    std::ofstream(record) << text;
    CHECK(text_of(fixture.packages("geo") + "/alpha/__init__.py") == "VERSION = '1.0'\n");
}

TEST_CASE("a lock has neither sources nor another Python", "[environments][store]") {
    EnvironmentsFixture fixture;
    auto order = fixture.order("geo", "alpha==1.0");
    order.locked = true;
    order.sources = {"alpha"};
    CHECK(fixture.refusal(order).code() == ErrorCode::kInvalidArgument);
    order.sources.clear();
    order.python = fixture.scratch.file("python");  // not Debian's program
    fs::copy_file(environments::kPythonProgram, order.python);
    CHECK(fixture.refusal(order).code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("an image that lost its name before it was written goes", "[environments][store]") {
    EnvironmentsFixture fixture;
    (void)fixture.create("geo", "alpha==1.0\n");
    fs::remove(fixture.directory + "/names/geo.json");
    (void)fixture.create("other", "alpha==1.1\n");
    CHECK(images_in(fixture) == 1);
}

TEST_CASE("of a lock nothing but what it names is installed", "[environments][store]") {
    EnvironmentsFixture fixture;
    auto order = fixture.order("geo", "tell==1");
    order.locked = true;
    const auto made = fixture.store.create(order, [](const std::string&) {});
    REQUIRE(made.has_value());
    CHECK(made.value().locked);
    CHECK(has(text_of(fixture.packages("geo") + "/arguments.txt"), "--no-deps --require-hashes"));
    CHECK_FALSE(fixture.create("other", "tell==1").locked);
    CHECK_FALSE(has(text_of(fixture.packages("other") + "/arguments.txt"), "--no-deps"));
}

}  // namespace
}  // namespace cellkeep::test
