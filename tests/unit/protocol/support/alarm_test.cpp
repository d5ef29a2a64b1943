// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/alarm.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <memory>
#include <optional>

namespace {

using cellkeep::Alarm;
using namespace std::chrono_literals;

struct AlarmFixture {
    boost::asio::io_context io;
    std::shared_ptr<int> owner = std::make_shared<int>(0);
    std::optional<Alarm> alarm{std::in_place, io, [this] { return owner; }};
    int calls = 0;
    int later_calls = 0;

    Alarm::Call count() {
        return [this] { ++calls; };
    }
    /// Runs everything that is due now, and nothing that is due later.
    void run() {
        io.restart();
        (void)io.run();
    }
};

}  // namespace

TEST_CASE("an alarm calls once, when its time has passed", "[alarm]") {
    AlarmFixture fixture;
    fixture.alarm->set_after(1ms, fixture.count());
    CHECK(fixture.alarm->is_set());
    CHECK(fixture.calls == 0);
    fixture.run();
    CHECK(fixture.calls == 1);
    CHECK_FALSE(fixture.alarm->is_set());
    fixture.run();
    CHECK(fixture.calls == 1);
}

TEST_CASE("an alarm that was taken back does not call", "[alarm]") {
    AlarmFixture fixture;
    fixture.alarm->set_after(0ms, fixture.count());
    SECTION("by cancel()") {
        fixture.alarm->cancel();
    }
    SECTION("by rest()") {
        fixture.alarm->rest();
    }
    SECTION("by the end of the alarm") {
        fixture.alarm.reset();
    }
    SECTION("by another one in its place") {
        fixture.alarm->set_after(0ms, [&fixture] { ++fixture.later_calls; });
    }
    SECTION("while its owner is being destroyed") {
        fixture.owner.reset();
    }
    const bool replaced = fixture.alarm.has_value() && fixture.owner && fixture.alarm->is_set();
    fixture.run();
    CHECK(fixture.calls == 0);
    CHECK(fixture.later_calls == (replaced ? 1 : 0));
}

TEST_CASE("an alarm that is taken back when its handler waits already does not call", "[alarm]") {
    AlarmFixture fixture;
    fixture.alarm->set_after(-1s, fixture.count());
    // Two alarms are due: the first one that is called takes the other back.
    Alarm other(fixture.io, [&fixture] { return fixture.owner; });
    other.set_after(-2s, [&fixture] { fixture.alarm->cancel(); });
    fixture.run();
    CHECK(fixture.calls == 0);
}

TEST_CASE(
    "an alarm that is set while its timer ticks on calls when its own time comes", "[alarm]") {
    AlarmFixture fixture;
    Alarm::Call never = [] { FAIL("it was taken back"); };
    SECTION("which is later than the timer's") {
        fixture.alarm->set_after(0ms, never);
        fixture.alarm->rest();
        CHECK_FALSE(fixture.alarm->is_set());
        const auto due = std::chrono::steady_clock::now() + 5ms;
        fixture.alarm->set_after(5ms, [&fixture, due] {
            ++fixture.calls;
            CHECK(std::chrono::steady_clock::now() >= due);
        });
    }
    SECTION("which is earlier than the timer's") {
        fixture.alarm->set_after(1h, never);
        fixture.alarm->rest();
        fixture.alarm->set_after(0ms, fixture.count());
    }
    SECTION("in the place of a later one") {
        fixture.alarm->set_after(1h, never);
        fixture.alarm->set_after(0ms, fixture.count());
    }
    CHECK(fixture.alarm->is_set());
    fixture.run();
    CHECK(fixture.calls == 1);
    CHECK_FALSE(fixture.alarm->is_set());
}

TEST_CASE("an alarm at rest keeps its timer, and a cancelled one does not", "[alarm]") {
    AlarmFixture fixture;
    fixture.alarm->set_after(1h, fixture.count());
    fixture.alarm->rest();
    (void)fixture.io.poll();
    CHECK_FALSE(fixture.io.stopped());  // it has something to wait for
    fixture.alarm->cancel();
    fixture.run();  // returns
    CHECK(fixture.calls == 0);
}

TEST_CASE("an alarm set for all time does not call, and can be set again", "[alarm]") {
    AlarmFixture fixture;
    fixture.alarm->set_after(std::chrono::steady_clock::duration::max(), fixture.count());
    (void)fixture.io.poll();
    CHECK(fixture.calls == 0);
    CHECK(fixture.alarm->is_set());
    fixture.alarm->set_after(0ms, fixture.count());
    fixture.run();
    CHECK(fixture.calls == 1);
}

TEST_CASE("an alarm may be set again by its own call", "[alarm]") {
    AlarmFixture fixture;
    fixture.alarm->set_after(0ms, [&fixture] {
        CHECK_FALSE(fixture.alarm->is_set());
        fixture.alarm->set_after(0ms, fixture.count());
    });
    fixture.run();
    CHECK(fixture.calls == 1);
}

TEST_CASE("the handler may destroy the alarm", "[alarm]") {
    AlarmFixture fixture;
    fixture.alarm->set_after(0ms, [&fixture] {
        fixture.alarm.reset();
        ++fixture.calls;
    });
    fixture.run();
    CHECK(fixture.calls == 1);
}

TEST_CASE("the owner lives until the call returns", "[alarm]") {
    AlarmFixture fixture;
    const std::weak_ptr<int> owner = fixture.owner;
    fixture.alarm->set_after(0ms, [&fixture, &owner] {
        fixture.owner.reset();
        CHECK_FALSE(owner.expired());
        ++fixture.calls;
    });
    fixture.run();
    CHECK(owner.expired());
    CHECK(fixture.calls == 1);
}
