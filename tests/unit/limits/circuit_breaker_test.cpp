// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/circuit_breaker.hpp"

#include "protocol/limits.hpp"
#include "tests/support/start_time.hpp"

#include <catch2/catch.hpp>

#include <utility>

using cellkeep::session::CircuitBreaker;
using cellkeep::session::CircuitState;
using cellkeep::session::CircuitVote;
using cellkeep::session::ExecutionStatus;
using cellkeep::session::vote_of;
using cellkeep::session::test::kStart;
using namespace std::chrono_literals;
namespace limits = cellkeep::limits;

namespace {

void run(CircuitBreaker& breaker, CircuitVote vote, CircuitBreaker::Time now) {
    breaker.on_accepted();
    breaker.on_end(vote, now);
}

/// A breaker that has just opened.
CircuitBreaker opened() {
    CircuitBreaker breaker(3);
    for (int i = 0; i < 3; ++i) {
        run(breaker, CircuitVote::kFailure, kStart);
    }
    return breaker;
}

}  // namespace

TEST_CASE(
    "the breaker opens at its number of failures in a row, not before", "[session][breaker]") {
    CircuitBreaker breaker(3);
    run(breaker, CircuitVote::kFailure, kStart);
    run(breaker, CircuitVote::kFailure, kStart);
    CHECK(breaker.info(kStart).state == CircuitState::kClosed);
    CHECK_FALSE(breaker.refusal(kStart).has_value());
    run(breaker, CircuitVote::kFailure, kStart);
    CHECK(breaker.info(kStart).state == CircuitState::kOpen);
    CHECK(breaker.info(kStart).retry_after == limits::kBreakerCooldownFirst);
    const auto refusal = breaker.refusal(kStart);
    REQUIRE(refusal.has_value());
    CHECK(refusal->used == 3);
    CHECK(refusal->limit == 3);
    CHECK(refusal->retry_after == limits::kBreakerCooldownFirst);
}

TEST_CASE("a success in between starts the count again", "[session][breaker]") {
    CircuitBreaker breaker(3);
    for (int i = 0; i < 10; ++i) {
        run(breaker, CircuitVote::kFailure, kStart);
        run(breaker, CircuitVote::kFailure, kStart);
        run(breaker, CircuitVote::kSuccess, kStart);
    }
    CHECK(breaker.info(kStart).state == CircuitState::kClosed);
    CHECK(breaker.info(kStart).failures == 0);
}

TEST_CASE("an interrupted execution does not count", "[session][breaker]") {
    CircuitBreaker breaker(2);
    run(breaker, CircuitVote::kFailure, kStart);
    run(breaker, CircuitVote::kNone, kStart);
    CHECK(breaker.info(kStart).failures == 1);
    run(breaker, CircuitVote::kFailure, kStart);
    CHECK(breaker.info(kStart).state == CircuitState::kOpen);
}

TEST_CASE("a breaker that is off never opens", "[session][breaker]") {
    CircuitBreaker breaker(0);
    for (int i = 0; i < 100; ++i) {
        run(breaker, CircuitVote::kFailure, kStart);
    }
    CHECK_FALSE(breaker.refusal(kStart).has_value());
    CHECK(breaker.info(kStart).state == CircuitState::kClosed);
}

TEST_CASE("after its time one execution may try, and only one at a time", "[session][breaker]") {
    CircuitBreaker breaker = opened();
    const auto before = kStart + limits::kBreakerCooldownFirst - 1ms;
    const auto after = kStart + limits::kBreakerCooldownFirst;
    CHECK(breaker.refusal(before).has_value());
    CHECK(breaker.info(after).state == CircuitState::kHalfOpen);
    CHECK_FALSE(breaker.refusal(after).has_value());
    breaker.on_accepted();
    CHECK(breaker.refusal(after).has_value());
    CHECK(breaker.refusal(after)->retry_after.has_value());

    SECTION("its success closes") {
        breaker.on_end(CircuitVote::kSuccess, after);
        CHECK(breaker.info(after).state == CircuitState::kClosed);
        CHECK_FALSE(breaker.refusal(after).has_value());
    }
    SECTION("its failure opens for twice as long, up to a bound") {
        auto now = after;
        auto wait = limits::kBreakerCooldownFirst;
        breaker.on_end(CircuitVote::kFailure, now);
        for (int i = 0; i < 12; ++i) {
            wait = std::min<std::chrono::seconds>(2 * wait, limits::kBreakerCooldownMax);
            CHECK(breaker.info(now).state == CircuitState::kOpen);
            CHECK(breaker.info(now).retry_after == wait);
            now += wait;
            run(breaker, CircuitVote::kFailure, now);
        }
        CHECK(breaker.info(now).retry_after == limits::kBreakerCooldownMax);
    }
    SECTION("its interruption lets the next one try") {
        breaker.on_end(CircuitVote::kNone, after);
        CHECK_FALSE(breaker.refusal(after).has_value());
        CHECK(breaker.info(after).state == CircuitState::kHalfOpen);
    }
}

TEST_CASE(
    "what was accepted before changes an open breaker only by succeeding", "[session][breaker]") {
    CircuitBreaker breaker = opened();
    breaker.on_accepted();
    breaker.on_accepted();
    breaker.on_end(CircuitVote::kFailure, kStart + 1s);
    CHECK(breaker.info(kStart + 1s).retry_after == limits::kBreakerCooldownFirst - 1s);
    breaker.on_end(CircuitVote::kSuccess, kStart + 1s);
    CHECK(breaker.info(kStart + 1s).state == CircuitState::kClosed);
}

TEST_CASE("how an execution ends decides what it says to the breaker", "[session][breaker]") {
    CHECK(vote_of(ExecutionStatus::kOk) == CircuitVote::kSuccess);
    CHECK(vote_of(ExecutionStatus::kInterrupted) == CircuitVote::kNone);
    for (const auto status :
         {ExecutionStatus::kError,
          ExecutionStatus::kTimeout,
          ExecutionStatus::kOom,
          ExecutionStatus::kDiskFull,
          ExecutionStatus::kOutputLimit,
          ExecutionStatus::kDenied,
          ExecutionStatus::kDead}) {
        CHECK(vote_of(status) == CircuitVote::kFailure);
    }
}
