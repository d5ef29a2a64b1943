// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/claimed_end.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <vector>

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using Step = ClaimedEnd::Step;

struct Watched {
    boost::asio::io_context io;
    std::vector<Step> steps;
    std::shared_ptr<int> owner = std::make_shared<int>(0);
    ClaimedEnd claim{io, [this] { return owner; }, 1ms, 1ms};

    ClaimedEnd::Act note() {
        return [this](Step step) { steps.push_back(step); };
    }
};

TEST_CASE("a claim that is never settled ends in a kill", "[session][claimed_end]") {
    Watched watched;
    watched.claim.watch(steady_clock::now(), watched.note());
    watched.io.run();
    CHECK(watched.steps == std::vector<Step>{Step::kAsk, Step::kInterrupt, Step::kKill});
    // The claim is over: the next one begins anew.
    watched.claim.watch(steady_clock::now(), watched.note());
    watched.io.restart();
    watched.io.run();
    CHECK(watched.steps.size() == 6);
}

TEST_CASE("a claim that is settled asks for nothing more", "[session][claimed_end]") {
    Watched watched;
    std::vector<Step> wanted;
    SECTION("before the deadline") {
        watched.claim.watch(steady_clock::now() + 1ms, watched.note());
        watched.claim.settle();
    }
    SECTION("by the end of its owner") {
        watched.claim.watch(steady_clock::now(), watched.note());
        watched.owner.reset();
    }
    SECTION("when the deadline has passed, and its handler waits to be called") {
        watched.claim.watch(steady_clock::now() - 1s, watched.note());
        watched.claim.settle();
    }
    SECTION("by the answer") {
        wanted = {Step::kAsk};
        watched.claim.watch(steady_clock::now(), [&watched](Step step) {
            watched.steps.push_back(step);
            watched.claim.settle();
        });
    }
    SECTION("by the interrupt") {
        wanted = {Step::kAsk, Step::kInterrupt};
        watched.claim.watch(steady_clock::now(), [&watched](Step step) {
            watched.steps.push_back(step);
            if (step == Step::kInterrupt) {
                watched.claim.settle();
            }
        });
    }
    watched.io.run();
    CHECK(watched.steps == wanted);
}

TEST_CASE("a later claim does not put off an open one", "[session][claimed_end]") {
    Watched watched;
    watched.claim.watch(steady_clock::now(), watched.note());
    watched.claim.watch(steady_clock::now() + 1h, [](Step) { FAIL("it was ignored"); });
    watched.io.run();
    CHECK(watched.steps.size() == 3);
}

TEST_CASE("a claim that was settled does not come back with the next", "[session][claimed_end]") {
    Watched watched;
    watched.claim.watch(steady_clock::now() - 1s, [](Step) { FAIL("it was settled"); });
    watched.claim.settle();
    watched.claim.watch(steady_clock::now(), watched.note());
    watched.io.run();
    CHECK(watched.steps.size() == 3);
}

TEST_CASE("a claim that is destroyed asks for nothing", "[session][claimed_end]") {
    boost::asio::io_context io;
    int asked = 0;
    const auto owner = std::make_shared<int>(0);
    auto claim = std::make_unique<ClaimedEnd>(
        io, [owner] { return owner; }, 1ms, 1ms);
    SECTION("before") {
        claim->watch(steady_clock::now() - 1s, [&asked](Step) { ++asked; });
        claim.reset();
        io.run();
        CHECK(asked == 0);
    }
    SECTION("while it acts") {
        claim->watch(steady_clock::now(), [&](Step) {
            ++asked;
            claim.reset();
        });
        io.run();
        CHECK(asked == 1);
    }
}

}  // namespace
}  // namespace cellkeep::session
