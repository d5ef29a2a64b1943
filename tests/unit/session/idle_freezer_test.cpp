// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/idle_freezer.hpp"

#include "tests/support/start_time.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

using namespace std::chrono_literals;

namespace {

using test::kStart;

FreezeSituation used_at(std::chrono::seconds last) {
    FreezeSituation situation;
    situation.after = 60s;
    situation.last_used = kStart + last;
    return situation;
}

struct FreezeRow {
    const char* claim;
    FreezeSituation situation;
    std::chrono::seconds now;
    bool look;
    std::optional<std::chrono::seconds> ask_again;
};

std::vector<FreezeRow> freeze_table() {
    const auto with = [](auto change) {
        FreezeSituation situation = used_at(100s);
        change(situation);
        return situation;
    };
    using S = FreezeSituation&;
    const auto looked = [](std::chrono::seconds when) {
        return [when](S s) { s.looked_at = kStart + when; };
    };
    return {
        {"just used", used_at(100s), 100s, false, 130s},
        {"a second before half of the time", used_at(100s), 129s, false, 130s},
        {"at half of the time", used_at(100s), 130s, true, 160s},
        {"a look of before the last use counts for nothing", with(looked(99s)), 100s, false, 130s},
        {"a second before the second look", with(looked(130s)), 159s, false, 160s},
        {"at the second look", with(looked(130s)), 160s, true, 190s},
        {"a first look that came late", with(looked(140s)), 160s, false, 170s},
        {"what was at work is looked at again", with(looked(160s)), 190s, true, 220s},
        {"0 is never", with([](S s) { s.after = 0s; }), 9000s, false, {}},
        {"what is frozen is not looked at", with([](S s) { s.frozen = true; }), 9000s, false, {}},
        {"what is at work is not looked at", with([](S s) { s.busy = true; }), 9000s, false, 9060s},
        {"never, and at work", with([](S s) { s.busy = true, s.after = 0s; }), 9000s, false, {}},
    };
}

/// A fake sandbox: it does only what a test says, and writes down what is done to it.
struct World {
    explicit World(std::chrono::milliseconds after)
        : freezer(
              io,
              after,
              {.busy = [this] { return busy; },
               .settling = [this] { return settling; },
               .look =
                   [this] {
                       ++looks;
                       if (on_look) {
                           on_look();
                       }
                       return shown;
                   },
               .freeze =
                   [this] {
                       done.emplace_back("freeze");
                       return freezes;
                   },
               .thaw =
                   [this] {
                       done.emplace_back("thaw");
                       return thaws;
                   },
               .changed = [this](bool frozen) { done.emplace_back(frozen ? "frozen" : "thawed"); },
               .failed = [this](const Error&) { done.emplace_back("failed"); }}) {}

    boost::asio::io_context io;
    bool busy = false;
    bool settling = false;
    int looks = 0;
    std::function<void()> on_look;
    Result<RestLook> shown = RestLook{true, 5ms};
    Status freezes = ok();
    Status thaws = ok();
    std::vector<std::string> done;
    IdleFreezer freezer;
};

constexpr std::chrono::milliseconds kSoon{2};
using Done = std::vector<std::string>;

}  // namespace

TEST_CASE("when a session is looked at, and when to ask again", "[session][freezer]") {
    for (const FreezeRow& row : freeze_table()) {
        INFO(row.claim);
        const FreezeDecision decision = decide_freeze(row.situation, kStart + row.now);
        CHECK(decision.look == row.look);
        CHECK(decision.ask_again.has_value() == row.ask_again.has_value());
        if (decision.ask_again.has_value() && row.ask_again.has_value()) {
            CHECK(*decision.ask_again == kStart + *row.ask_again);
        }
    }
}

TEST_CASE("the default is less than the longest, and each is a time", "[session][freezer]") {
    CHECK(kFreezeAfterDefault == 60s);
    CHECK(kFreezeAfterMax == 604'800s);
}

TEST_CASE("rest is two looks that show no work and no time used between", "[session][freezer]") {
    const RestLook waits{true, 5ms};
    CHECK(shows_rest(waits, waits));
    CHECK_FALSE(shows_rest(std::nullopt, waits));
    CHECK_FALSE(shows_rest(RestLook{false, 5ms}, waits));
    CHECK_FALSE(shows_rest(waits, RestLook{false, 5ms}));
    CHECK_FALSE(shows_rest(waits, RestLook{true, 6ms}));
}

TEST_CASE(
    "what a client freezes stays so until it is woken, whatever it does", "[session][freezer]") {
    World world(0ms);  // nothing is frozen for being idle
    world.busy = true;
    CHECK(world.freezer.freeze({}).has_value());
    CHECK(world.freezer.freeze({}).has_value());
    CHECK(world.freezer.frozen());
    CHECK(world.looks == 0);
    CHECK(world.done == Done{"freeze", "frozen"});
    world.freezer.wake();
    CHECK_FALSE(world.freezer.frozen());
    CHECK(world.done == Done{"freeze", "frozen", "thaw", "thawed"});
}

TEST_CASE("who froze is known until it is woken, and hears that once", "[session][freezer]") {
    World world(kSoon);
    int woken = 0;
    world.freezer.note_use();
    world.io.run();
    REQUIRE(world.freezer.frozen());
    CHECK_FALSE(world.freezer.paused());  // for being idle
    CHECK(world.freezer.freeze([&woken] { woken += 100; }).has_value());
    CHECK(world.freezer.freeze([&woken] { ++woken; }).has_value());
    CHECK(world.freezer.paused());
    CHECK(world.done == Done{"freeze", "frozen"});
    world.freezer.wake();
    CHECK_FALSE(world.freezer.paused());
    CHECK(woken == 1);
    world.io.restart();
    world.io.run();
    REQUIRE(world.freezer.frozen());
    CHECK_FALSE(world.freezer.paused());
    world.freezer.wake();
    CHECK(woken == 1);
}

TEST_CASE("a freeze that fails is taken back and told", "[session][freezer]") {
    World world(0ms);
    world.freezes = Error(ErrorCode::kSystem, "freeze: not now");
    CHECK(world.freezer.freeze({}).error().message() == "freeze: not now");
    CHECK_FALSE(world.freezer.frozen());
    CHECK(world.done == Done{"freeze", "thaw"});
}

TEST_CASE("a pause waits for the server's own work inside", "[session][freezer]") {
    World world(0ms);
    world.settling = true;
    int woken = 0;
    CHECK(world.freezer.freeze([&woken] { ++woken; }).has_value());
    CHECK(world.freezer.paused());
    CHECK_FALSE(world.freezer.frozen());
    world.freezer.settle();  // of another piece of work
    CHECK(world.done.empty());
    SECTION("until it has ended") {
        world.settling = false;
        world.freezer.settle();
        world.freezer.settle();
        CHECK(world.freezer.frozen());
        CHECK(world.done == Done{"freeze", "frozen"});
        CHECK(woken == 0);
        world.freezer.wake();
        CHECK(woken == 1);
    }
    SECTION("and is over if a client asks for something before that") {
        world.freezer.wake();
        CHECK_FALSE(world.freezer.paused());
        CHECK(woken == 1);
        world.settling = false;
        world.freezer.settle();
        CHECK(world.done.empty());
    }
    SECTION("and is over if it fails then") {
        world.settling = false;
        world.freezes = Error(ErrorCode::kSystem, "freeze: not now");
        world.freezer.settle();
        CHECK_FALSE(world.freezer.paused());
        CHECK_FALSE(world.freezer.frozen());
        CHECK(world.done == Done{"freeze", "thaw", "failed"});
        CHECK(woken == 1);
    }
}

TEST_CASE("the time of pauses is counted until they end", "[session][freezer]") {
    World world(0ms);
    const auto later = std::chrono::steady_clock::now() + 1h;
    CHECK(world.freezer.paused_for(later) == 0ns);
    CHECK(world.freezer.freeze({}).has_value());
    CHECK(world.freezer.paused_for(later) > 59min);
    CHECK(world.freezer.freeze({}).has_value());  // of the same pause
    CHECK(world.freezer.paused_for(later) > 59min);
    world.freezer.wake();
    const auto first = world.freezer.paused_for(later);
    CHECK(first < 59min);
    CHECK(world.freezer.paused_for(later + 1h) == first);
    CHECK(world.freezer.freeze({}).has_value());
    CHECK(world.freezer.paused_for(later) > first);
}

TEST_CASE("a session at rest is frozen, costs nothing, and wakes once", "[session][freezer]") {
    World world(kSoon);
    world.freezer.note_use();
    world.io.run();  // ends, because no timer is left
    CHECK(world.freezer.frozen());
    CHECK(world.looks == 2);
    CHECK(world.done == Done{"freeze", "frozen"});
    world.freezer.note_use();  // of what is said about it, not to it
    world.io.restart();
    CHECK(world.io.poll() == 0);
    CHECK(world.freezer.frozen());

    world.done.clear();
    world.freezer.wake();
    world.freezer.wake();
    CHECK_FALSE(world.freezer.frozen());
    CHECK(world.done == Done{"thaw", "thawed"});
    world.io.restart();
    world.io.run();
    CHECK(world.freezer.frozen());  // again, after as long
}

TEST_CASE("what used time between two looks is looked at again", "[session][freezer]") {
    World world(kSoon);
    world.on_look = [&world] {
        if (world.looks < 5) {
            world.shown = RestLook{true, world.looks * 1ms};
        }
    };
    world.freezer.note_use();
    world.io.run();
    CHECK(world.looks == 5);
    CHECK(world.freezer.frozen());
}

TEST_CASE("a use between two looks begins anew", "[session][freezer]") {
    World world(kSoon);
    world.freezer.note_use();
    REQUIRE(world.io.run_one() == 1);
    CHECK(world.looks == 1);
    world.freezer.note_use();
    world.io.run();
    CHECK(world.freezer.frozen());
    CHECK(world.looks == 3);
}

TEST_CASE("what is at work is neither looked at nor frozen", "[session][freezer]") {
    World world(kSoon);
    world.busy = true;
    world.freezer.note_use();
    for (int i = 0; i < 3; ++i) {
        REQUIRE(world.io.run_one() == 1);
    }
    CHECK(world.looks == 0);
    world.busy = false;
    world.io.run();
    CHECK(world.freezer.frozen());
}

TEST_CASE("0 is never", "[session][freezer]") {
    World world(0ms);
    world.freezer.note_use();
    CHECK(world.io.run() == 0);
    CHECK(world.done.empty());
}

TEST_CASE("a host that cannot is asked once", "[session][freezer]") {
    World world(kSoon);
    const Error no(ErrorCode::kUnavailable, "no");
    SECTION("look") {
        world.shown = no;
        world.freezer.note_use();
        world.io.run();
        CHECK(world.looks == 1);
        CHECK(world.done == Done{"failed"});
    }
    SECTION("freeze: what may come late is taken back") {
        world.freezes = no;
        world.freezer.note_use();
        world.io.run();
        CHECK(world.done == Done{"freeze", "thaw", "failed"});
    }
    CHECK_FALSE(world.freezer.frozen());
    world.freezer.note_use();
    world.io.restart();
    CHECK(world.io.run() == 0);
}

TEST_CASE("a thaw that fails is reported, and not tried for ever", "[session][freezer]") {
    World world(kSoon);
    world.freezer.note_use();
    world.io.run();
    world.thaws = Error(ErrorCode::kSystem, "no");
    world.done.clear();
    world.freezer.wake();
    world.freezer.wake();
    CHECK(world.done == Done{"thaw", "failed", "thawed"});
}

TEST_CASE("what another program has paused stays so until it is woken", "[session][freezer]") {
    World world(kSoon);
    const auto since = std::chrono::steady_clock::now() - std::chrono::hours(1);
    world.freezer.go_on_paused(since);
    CHECK(world.freezer.frozen());
    CHECK(world.freezer.paused());
    CHECK(world.freezer.paused_since() == since);
    CHECK(world.freezer.paused_for(since + std::chrono::hours(3)) == std::chrono::hours(3));
    CHECK(world.done.empty());  // it is frozen already
    int woken = 0;
    REQUIRE(world.freezer.freeze([&woken] { ++woken; }).has_value());
    CHECK(world.done.empty());
    world.freezer.wake();
    CHECK(world.done == Done{"thaw", "thawed"});
    CHECK(woken == 1);
    CHECK_FALSE(world.freezer.paused());
    world.freezer.wake();
    CHECK(woken == 1);
}

TEST_CASE("after stop() nothing happens, nor after its end", "[session][freezer]") {
    World world(kSoon);
    world.freezer.note_use();
    world.freezer.stop();
    world.io.run();
    world.freezer.note_use();
    world.io.restart();
    CHECK(world.io.run() == 0);
    CHECK(world.done.empty());

    boost::asio::io_context io;
    auto freezer = std::make_unique<IdleFreezer>(
        io,
        kSoon,
        IdleFreezer::Hooks{
            .busy = [] { return false; },
            .settling = [] { return false; },
            .look = [] { return Result<RestLook>(RestLook{}); },
            .freeze = [] { return Status(ok()); },
            .thaw = [] { return Status(ok()); },
            .changed = [](bool) { FAIL("it is gone"); },
            .failed = [](const Error&) { FAIL("it is gone"); }});
    freezer->note_use();
    freezer.reset();
    CHECK(io.run() == 1);  // the timer's end, and nothing more
}

}  // namespace cellkeep::session
