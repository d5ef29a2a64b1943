// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/process/worker_starts.hpp"

#include "tests/unit/kernel/starts_fixture.hpp"

namespace cellkeep::session {
namespace {

using namespace std::chrono_literals;
using test::StartsFixture;
using test::WaitingChild;
using Ends = std::vector<std::string>;

TEST_CASE("a worker is handed out when pid 1 has answered", "[session][starts]") {
    StartsFixture fixture;
    const WaitingChild child;
    const auto start = fixture.begin("a");
    CHECK(start->id() == 1);
    CHECK(fixture.sandbox.taken.at(0).argv == std::vector<std::string>{"a"});
    fixture.poll();
    CHECK(fixture.ends.empty());
    fixture.sandbox.answer_with(child);
    fixture.poll();
    CHECK(fixture.ends == Ends{"a: worker 1"});
    CHECK(child.lives());
    fixture.poll();
    CHECK(fixture.ends.size() == 1);
}

TEST_CASE("a start that cannot be sent is an error at once", "[session][starts]") {
    StartsFixture fixture;
    fixture.sandbox.refuses = Error(ErrorCode::kInvalidArgument, "no");
    const auto refused = fixture.starts->begin(StartsFixture::spec("a"), fixture.note("a"));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
    fixture.poll();
    CHECK(fixture.ends.empty());
    fixture.sandbox.refuses.reset();
    const auto next = fixture.begin("b");  // nothing is left of the first
    CHECK(next->id() == 1);
}

TEST_CASE("a second start waits for the answer to the first", "[session][starts]") {
    StartsFixture fixture;
    const WaitingChild child;
    const auto first = fixture.begin("a");
    const auto second = fixture.begin("b");
    const auto third = fixture.begin("c");
    CHECK(second->id() == 0);
    CHECK(fixture.sandbox.taken.size() == 1);
    SECTION("which is a worker") {
        fixture.sandbox.answer_with(child);
        fixture.poll();
        CHECK(fixture.ends == Ends{"a: worker 1"});
    }
    SECTION("which is an error") {
        fixture.sandbox.answer(Error(ErrorCode::kSystem, "exec"));
        fixture.poll();
        CHECK(fixture.ends == Ends{"a: " + std::string(to_string(ErrorCode::kSystem))});
    }
    CHECK(second->id() == 2);
    CHECK(third->id() == 0);
    fixture.sandbox.refuses = Error(ErrorCode::kUnavailable, "full");
    fixture.sandbox.answer_with(child);
    fixture.poll();
    CHECK(
        Ends(fixture.ends.begin() + 1, fixture.ends.end()) ==
        Ends{"b: worker 2", "c: " + std::string(to_string(ErrorCode::kUnavailable))});
}

TEST_CASE("a pid 1 that does not answer in time is given up", "[session][starts]") {
    StartsFixture fixture(1ms);
    fixture.sandbox.frozen_for = GENERATE(0, 2);  // it cannot answer then
    const auto first = fixture.begin("a");
    const auto second = fixture.begin("b");
    fixture.until([&] { return fixture.sandbox.looks == fixture.sandbox.frozen_for; });
    CHECK(fixture.sandbox.given_up == 0);
    fixture.until([&] { return fixture.ends.size() == 2; });
    CHECK(fixture.sandbox.given_up == 1);
    CHECK(
        fixture.ends == Ends{
                            "a: " + std::string(to_string(ErrorCode::kTimeout)),
                            "b: " + std::string(to_string(ErrorCode::kUnavailable))});
    // Nothing is left that could still call, and what is asked for now is refused at once.
    CHECK(fixture.starts->begin(StartsFixture::spec("c"), fixture.note("c")).has_error());
    fixture.poll();
    CHECK(fixture.ends.size() == 2);
}

TEST_CASE("a fork is adopted while all else waits", "[session][starts]") {
    StartsFixture fixture;
    WaitingChild child;
    fixture.sandbox.only_adopts = true;
    const auto first = fixture.begin("a");
    auto dropped = fixture.begin("b");
    CHECK(fixture.sandbox.taken.empty());
    sandbox::WorkerSpec fork;
    fork.forked = 7;
    const auto adopted = fixture.starts->begin(std::move(fork), fixture.note("fork"));
    REQUIRE(adopted.has_value());
    REQUIRE(fixture.sandbox.taken.size() == 1);
    CHECK(fixture.sandbox.taken[0].forked == 7);
    fixture.sandbox.answer_with(child);
    fixture.poll();
    CHECK(fixture.ends == Ends{"fork: worker 1"});
    dropped.reset();
    fixture.starts->resume();  // too early
    CHECK(fixture.sandbox.taken.size() == 1);
    fixture.sandbox.only_adopts = false;
    fixture.starts->resume();
    CHECK(fixture.sandbox.taken.size() == 2);
    fixture.sandbox.answer_with(child);
    fixture.poll();
    CHECK(fixture.ends == Ends{"fork: worker 1", "a: worker 2"});
    CHECK(fixture.sandbox.taken.size() == 2);
}

TEST_CASE("a worker that no kernel waits for any more is killed", "[session][starts]") {
    StartsFixture fixture;
    WaitingChild child;
    fixture.begin("a").reset();
    auto second = fixture.begin("b");
    const auto third = fixture.begin("c");
    second.reset();
    fixture.sandbox.answer_with(child);
    fixture.poll();
    CHECK(child.wait_for_signal() == SIGKILL);
    CHECK(fixture.ends.empty());
    // What has no holder is not even sent.
    REQUIRE(fixture.sandbox.taken.size() == 2);
    CHECK(fixture.sandbox.taken[1].argv == std::vector<std::string>{"c"});
    CHECK(third->id() == 2);
}

TEST_CASE("as many starts wait as a session has kernels, and no more", "[session][starts]") {
    StartsFixture fixture;
    const auto first = fixture.begin("first");
    std::vector<std::shared_ptr<WorkerStart>> waiting;
    for (std::size_t i = 0; i < kWaitingStartsMax; ++i) {
        waiting.push_back(fixture.begin("waits"));
    }
    const auto refused = fixture.starts->begin(StartsFixture::spec("x"), fixture.note("x"));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    waiting.pop_back();
    waiting.push_back(fixture.begin("has its place"));
}

TEST_CASE(
    "what a worker is handed to may start another and let go of this one", "[session][starts]") {
    StartsFixture fixture;
    const WaitingChild child;
    std::shared_ptr<WorkerStart> first;
    std::shared_ptr<WorkerStart> second;
    auto begun =
        fixture.starts->begin(StartsFixture::spec("a"), [&](const Result<sandbox::Worker>& result) {
            CHECK(result.has_value());
            first.reset();
            second = fixture.begin("b");
        });
    REQUIRE(begun.has_value());
    first = std::move(begun).value();
    fixture.sandbox.answer_with(child);
    fixture.poll();
    REQUIRE(second != nullptr);
    CHECK(second->id() == 2);
    fixture.sandbox.answer_with(child);
    fixture.poll();
    CHECK(fixture.ends == Ends{"b: worker 2"});
}

TEST_CASE("nothing is called when the session has ended during a start", "[session][starts]") {
    StartsFixture fixture(1ms);
    const WaitingChild child;
    const auto start = fixture.begin("a");
    SECTION("its objects are gone") {
        fixture.starts.reset();
    }
    SECTION("its objects are being destroyed") {
        fixture.owner.reset();
        fixture.sandbox.answer_with(child);
    }
    SECTION("its objects are gone while the answer waits to be handled") {
        fixture.sandbox.answer_with(child);
        fixture.starts.reset();
    }
    fixture.io.run();
    CHECK(fixture.ends.empty());
    CHECK(fixture.sandbox.given_up == 0);
}

}  // namespace
}  // namespace cellkeep::session
