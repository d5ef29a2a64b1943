// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/checkpoints/auto_checkpoints.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <memory>

namespace cellkeep::session {
namespace {

using checkpoint::AutoCheckpoints;
using std::chrono::milliseconds;

struct AutoFixture {
    explicit AutoFixture(milliseconds patience = std::chrono::hours(1)) : patience_(patience) {}

    boost::asio::io_context io;
    AutoCheckpoints when = AutoCheckpoints::kEach;
    bool at_rest = true;
    int made = 0;
    int released = 0;
    milliseconds patience_;
    AutoCheckpointer automatic{
        io,
        {.when = [this] { return when; },
         .is_at_rest = [this] { return at_rest; },
         .make = [this] { ++made; },
         .release = [this] { ++released; }},
        []() -> std::shared_ptr<const void> { return std::make_shared<int>(); },
        patience_};
};

TEST_CASE("a checkpoint follows a cell when the interpreter is at rest", "[auto]") {
    AutoFixture fixture;
    fixture.automatic.review();
    CHECK(fixture.made == 0);  // nothing has run
    fixture.at_rest = false;   // its files are looked at
    fixture.automatic.note_run(milliseconds(0));
    CHECK(fixture.automatic.is_due());
    fixture.automatic.review();
    CHECK(fixture.made == 0);
    fixture.at_rest = true;
    fixture.automatic.review();
    fixture.automatic.review();
    CHECK(fixture.made == 1);
    CHECK(fixture.automatic.is_due());  // what comes now waits
    CHECK(fixture.released == 0);
    bool waited = false;
    const auto wait = [&]() -> boost::asio::awaitable<void> {
        co_await fixture.automatic.wait();
        waited = true;
    };
    boost::asio::co_spawn(fixture.io, wait, boost::asio::detached);
    (void)fixture.io.poll();
    CHECK_FALSE(waited);
    fixture.automatic.finish();
    fixture.io.restart();
    (void)fixture.io.poll();
    CHECK(waited);
    CHECK_FALSE(fixture.automatic.is_due());
    CHECK(fixture.released == 1);
    fixture.automatic.review();
    CHECK(fixture.made == 1);
}

TEST_CASE("what is costly has run for kCostlyRun", "[auto]") {
    AutoFixture fixture;
    fixture.when = AutoCheckpoints::kCostly;
    fixture.automatic.note_run(checkpoint::kCostlyRun - milliseconds(1));
    fixture.automatic.review();
    CHECK(fixture.made == 0);
    fixture.automatic.note_run(checkpoint::kCostlyRun);
    fixture.automatic.review();
    CHECK(fixture.made == 1);
}

TEST_CASE("a session that wants none makes none", "[auto]") {
    AutoFixture fixture;
    fixture.when = AutoCheckpoints::kOff;
    fixture.automatic.note_run(checkpoint::kCostlyRun);
    CHECK_FALSE(fixture.automatic.is_due());
    fixture.when = AutoCheckpoints::kEach;
    fixture.automatic.note_run(milliseconds(1));
    fixture.automatic.stop();
    fixture.automatic.review();
    CHECK(fixture.made == 0);
}

TEST_CASE("the next cell waits for kAutoCheckpointPatience and no longer", "[auto]") {
    AutoFixture fixture(milliseconds(1));
    CHECK(kAutoCheckpointPatience > milliseconds(1));
    fixture.at_rest = false;
    fixture.automatic.note_run(milliseconds(0));
    (void)fixture.io.run();
    CHECK_FALSE(fixture.automatic.is_due());
    CHECK(fixture.released == 1);
    // But for one that is being made.
    fixture.at_rest = true;
    fixture.automatic.note_run(milliseconds(0));
    fixture.automatic.review();
    fixture.io.restart();
    (void)fixture.io.run();
    CHECK(fixture.automatic.is_due());
    CHECK(fixture.released == 1);
}

}  // namespace
}  // namespace cellkeep::session
