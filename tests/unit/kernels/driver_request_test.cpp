// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/running_request.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::kernels::driver {

using nlohmann::json;
using Answer = RunningRequest::Answer;
using Asks = RunningRequest::Asks;

namespace {

constexpr RequestRules kCell{.interruptible = true, .allow_stdin = true};

json done_of(std::uint64_t id) {
    return {{"event", "done"}, {"id", id}};
}

}  // namespace

TEST_CASE("a request is done once, by an event with its id", "[kernel][driver]") {
    RunningRequest request;
    CHECK_FALSE(request.take_done(done_of(1)));  // nothing runs
    const std::uint64_t first = request.begin(kCell);
    CHECK_FALSE(request.take_done(done_of(first + 1)));
    CHECK_FALSE(request.take_done({{"event", "done"}}));
    CHECK_FALSE(request.take_done({{"event", "done"}, {"id", "1"}}));
    CHECK_FALSE(request.take_done({{"event", "done"}, {"id", -1}}));
    CHECK_FALSE(request.is_done());
    REQUIRE(request.take_done(done_of(first)));
    CHECK(request.is_done());
    CHECK(request.is_running());
    const Status second = request.take_done(done_of(first));
    REQUIRE_FALSE(second);
    CHECK(second.error().code() == ErrorCode::kProtocol);

    const auto done = request.end();
    REQUIRE(done);
    CHECK((*done)["status"] == "ok");
    CHECK_FALSE(request.is_running());
    CHECK_FALSE(request.end());

    const std::uint64_t next = request.begin(kCell);
    CHECK(next != first);
    CHECK_FALSE(request.is_done());
    CHECK_FALSE(request.take_done(done_of(first)));
}

TEST_CASE("the status that a driver sends is kept", "[kernel][driver]") {
    RunningRequest request;
    json event = done_of(request.begin({}));
    event["status"] = "error";
    REQUIRE(request.take_done(event));
    CHECK((*request.end())["status"] == "error");
}

TEST_CASE("a request that ends without an answer has none", "[kernel][driver]") {
    RunningRequest request;
    (void)request.begin(kCell);
    CHECK_FALSE(request.end());
    CHECK_FALSE(request.is_interruptible());
}

TEST_CASE("a question needs a running request that allows input", "[kernel][driver]") {
    RunningRequest request;
    CHECK_FALSE(request.take_question(Asks::kInput));
    (void)request.begin(kCell);
    CHECK(request.take_question(Asks::kInput).value() == Answer::kAsk);
    (void)request.end();
    CHECK_FALSE(request.take_question(Asks::kInput));
    (void)request.begin({.interruptible = true, .allow_stdin = false});
    CHECK(request.take_question(Asks::kInput).value() == Answer::kRefuse);
}

TEST_CASE("tools are another permission than input", "[kernel][driver]") {
    RunningRequest request;
    CHECK_FALSE(request.take_question(Asks::kTool));
    (void)request.begin(kCell);
    CHECK(request.take_question(Asks::kTool).value() == Answer::kRefuse);
    (void)request.end();
    (void)request.begin({.interruptible = true, .allow_stdin = false, .allow_tools = true});
    CHECK(request.take_question(Asks::kTool).value() == Answer::kAsk);
    CHECK(request.take_question(Asks::kInput).value() == Answer::kRefuse);
    request.set_awaits_answer(true);
    CHECK_FALSE(request.take_question(Asks::kTool));
}

TEST_CASE("one question is open at a time, unless an interrupt came", "[kernel][driver]") {
    RunningRequest request;
    (void)request.begin(kCell);
    request.set_awaits_answer(true);
    const auto second = request.take_question(Asks::kInput);
    REQUIRE_FALSE(second);
    CHECK(second.error().code() == ErrorCode::kProtocol);

    REQUIRE(request.take_interrupt());
    CHECK(request.take_question(Asks::kInput).value() == Answer::kAsk);

    request.set_awaits_answer(false);
    (void)request.end();
    (void)request.begin(kCell);
    CHECK_FALSE(request.awaits_answer());
    CHECK(request.take_question(Asks::kInput));
}

TEST_CASE("an open question ends with its request", "[kernel][driver]") {
    RunningRequest request;
    (void)request.begin(kCell);
    request.set_awaits_answer(true);
    (void)request.end();
    CHECK_FALSE(request.awaits_answer());
}

TEST_CASE("an interrupt reaches only a cell that runs", "[kernel][driver]") {
    RunningRequest request;
    CHECK_FALSE(request.take_interrupt());
    (void)request.begin({});
    CHECK_FALSE(request.take_interrupt());
    (void)request.end();
    const std::uint64_t id = request.begin(kCell);
    CHECK(request.take_interrupt());
    CHECK(request.take_interrupt());  // a second one for the same cell
    REQUIRE(request.take_done(done_of(id)));
    CHECK_FALSE(request.take_interrupt());
    (void)request.end();
    CHECK_FALSE(request.take_interrupt());
}

TEST_CASE("an interrupt is remembered until it is forgotten once", "[kernel][driver]") {
    RunningRequest request;
    CHECK_FALSE(request.forget_interrupt());
    (void)request.begin(kCell);
    REQUIRE(request.take_interrupt());
    (void)request.end();

    SECTION("by asking for it") {
        CHECK(request.forget_interrupt());
        CHECK_FALSE(request.forget_interrupt());
    }
    SECTION("by a request that cannot be interrupted") {
        (void)request.begin({});
        CHECK_FALSE(request.forget_interrupt());
    }
    SECTION("not by another cell") {
        (void)request.begin(kCell);
        CHECK(request.forget_interrupt());
    }
}

}  // namespace cellkeep::kernels::driver
