// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/session_teardown.hpp"

#include "tests/unit/service/fake_managed_session.hpp"

#include <catch2/catch.hpp>

#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::session {
namespace {

using test::FakeManagedSession;
using test::Steps;
using namespace std::chrono_literals;

struct TeardownFixture {
    boost::asio::io_context io;
    Steps steps;
    test::Places places;
    std::deque<std::shared_ptr<Completion<bool>>> attempts;  // that run
    bool retiring_fails = false;
    std::string unexpected_end;
    std::shared_ptr<SessionTeardown> teardown = SessionTeardown::create(
        io,
        {.destroy = [this](SessionTeardown::SandboxPtr) { return attempt(); },
         .retire = [this](SessionTeardown::SandboxPtr) { return retire(); },
         .wait_for_attempts = [this] { steps.emplace_back("waited"); },
         .destroy_now =
             [this](const SessionTeardown::SandboxPtr&) { steps.emplace_back("destroyed"); },
         .unexpected_end = [this](const SessionTeardown::SandboxPtr&) { return unexpected_end; },
         .on_gone = [this] { steps.emplace_back("gone"); },
         .log = [this](const std::string& line) { steps.push_back(line); }});

    boost::asio::awaitable<Status> attempt() {
        attempts.push_back(std::make_shared<Completion<bool>>(io));
        const auto mine = attempts.back();
        const bool gone = co_await Completion<bool>::wait(mine);
        co_return gone ? Status(ok()) : Status(Error(ErrorCode::kTimeout, "busy"));
    }
    boost::asio::awaitable<Status> retire() {
        steps.emplace_back("retired");
        co_return retiring_fails ? Status(Error(ErrorCode::kTimeout, "busy")) : Status(ok());
    }
    void begin(
        const std::string& id, std::uint32_t slot, std::shared_ptr<FamilyMember> family = nullptr) {
        const auto session = std::make_shared<FakeManagedSession>(id, steps);
        session->member = std::move(family);
        teardown->begin(places.entry(session, slot), {});
        poll();
    }
    /// Ends the first of the running attempts.
    void end_attempt(bool gone) {
        attempts.front()->set(gone);
        attempts.pop_front();
        poll();
    }
    void poll() {
        io.restart();
        (void)io.poll();
    }
    /// Set when the wait is over.
    std::shared_ptr<bool> wait(boost::asio::awaitable<void> what) {
        auto over = std::make_shared<bool>(false);
        boost::asio::co_spawn(
            io, std::move(what), [over](const std::exception_ptr&) { *over = true; });
        poll();
        return over;
    }
};

TEST_CASE_METHOD(TeardownFixture, "the log tells why a sandbox was lost", "[service][teardown]") {
    unexpected_end = "pid 1 closed its reports; it was killed by signal 9";
    begin("a", 3);
    end_attempt(false);
    CHECK(steps.back() == "the end of session a takes longer: busy");
    REQUIRE(io.run_one() > 0);  // the timer of the next attempt
    poll();
    end_attempt(true);
    REQUIRE(steps.size() > 2);
    CHECK(
        steps[steps.size() - 2] ==
        "the sandbox of session a was lost: pid 1 closed its reports; it was killed by "
        "signal 9");
    CHECK(steps.back() == "gone");
}

TEST_CASE_METHOD(
    TeardownFixture, "a session's number is free when nothing is left", "[service][teardown]") {
    begin("a", 3);
    CHECK(steps == Steps{"a end", "a release"});
    CHECK(teardown->is_removing());
    CHECK(places.kernel_ids->empty());
    CHECK(places.slots->contains(3));
    end_attempt(true);
    CHECK_FALSE(teardown->is_removing());
    CHECK(places.slots->empty());
    CHECK(steps.back() == "gone");
}

TEST_CASE_METHOD(
    TeardownFixture, "a removal that the host refuses is tried again", "[service][teardown]") {
    begin("a", 0);
    end_attempt(false);
    CHECK(steps.back() == "the end of session a takes longer: busy");
    CHECK(attempts.empty());
    io.restart();
    while (attempts.empty()) {
        REQUIRE(io.run_one_for(20s) == 1);
    }
    const std::size_t lines = steps.size();
    end_attempt(false);
    CHECK(steps.size() == lines);  // logged once
    CHECK(places.slots->contains(0));
    io.restart();
    while (attempts.empty()) {
        REQUIRE(io.run_one_for(20s) == 1);
    }
    end_attempt(true);
    CHECK(places.slots->empty());
}

TEST_CASE_METHOD(
    TeardownFixture,
    "what is left of a session stays, and keeps its number, until its last branch is gone",
    "[service][teardown]") {
    retiring_fails = GENERATE(false, true);
    const auto parent = std::make_shared<FamilyMember>(0);
    const auto one = std::make_shared<FamilyMember>(parent);
    const auto two = std::make_shared<FamilyMember>(parent);
    begin("parent", 0, parent);
    const std::size_t lines = retiring_fails ? 1 : 0;
    REQUIRE(steps.size() == 3 + lines);
    CHECK(
        Steps(steps.begin(), steps.begin() + 3) == Steps{"parent end", "parent aside", "retired"});
    CHECK(attempts.empty());
    // Who asked for the end, or waits for room, does not wait for the branches.
    CHECK_FALSE(teardown->is_removing());
    CHECK(*wait(teardown->wait_until_gone("parent")));
    CHECK(*wait(teardown->wait_for_any(SessionTeardown::TimePoint::max())));
    CHECK(places.slots->contains(0));
    begin("one", 1, one);
    end_attempt(true);
    CHECK(places.slots->contains(0));
    CHECK(attempts.empty());
    begin("two", 2, two);
    CHECK(places.slots->contains(0));
    end_attempt(true);
    REQUIRE(attempts.size() == 1);  // now the parent's
    CHECK(teardown->is_removing());
    end_attempt(true);
    CHECK(places.slots->empty());
    CHECK_FALSE(teardown->is_removing());
}

/// One without a process or a cgroup.
SessionTeardown::SandboxPtr empty_sandbox() {
    return std::make_shared<sandbox::Sandbox>(sandbox::Sandbox::take_over({}));
}

TEST_CASE_METHOD(
    TeardownFixture, "what stays for branches passes to another program", "[service][teardown]") {
    const auto first = std::make_shared<FamilyMember>(0);
    const auto middle = std::make_shared<FamilyMember>(first);
    const FamilyMember last(middle);
    const auto session = std::make_shared<FakeManagedSession>("middle", steps);
    session->member = middle;
    session->branch = BranchInfo{"first", "ckp_1", {}};
    session->rest = empty_sandbox();
    teardown->begin(places.entry(session, 3), {});
    CHECK(teardown->find_work() == Steps{"middle (it ends, and its branches live)"});
    poll();
    CHECK(teardown->find_work().empty());
    REQUIRE(teardown->staying().size() == 1);
    CHECK(teardown->staying()[0].session_id == "middle");
    CHECK(teardown->staying()[0].family == middle);
    SharedParts shared;
    CHECK(teardown->pass_on({first.get(), &last}, shared).empty());
    CHECK(teardown->staying().size() == 1);
    const auto passed = teardown->pass_on({first.get(), middle.get()}, shared);
    REQUIRE(passed.size() == 1);
    CHECK(passed[0].id == "middle");
    CHECK(passed[0].parent == "first");
    CHECK(passed[0].slot == 3);
    CHECK_FALSE(passed[0].zygote.has_value());
    CHECK(teardown->staying().empty());
    steps.clear();
    teardown->begin_shutdown();
    teardown->finish();
    CHECK(steps == Steps{"waited"});  // what has passed is not ended here
}

TEST_CASE_METHOD(
    TeardownFixture, "what has passed stays for its branches, too", "[service][teardown]") {
    const auto parent = std::make_shared<FamilyMember>(3);
    auto branch = std::make_shared<FamilyMember>(parent);
    const bool is_last = GENERATE(false, true);
    if (is_last) {
        branch.reset();  // it was on its way out when the program was replaced
    }
    teardown->go_on(
        {"parent", "above", empty_sandbox(), parent},
        std::move(*Claim<std::uint32_t>::take(places.slots, 3)));
    CHECK(teardown->find_work().empty());
    CHECK(teardown->staying().at(0).parent == "above");
    CHECK(*wait(teardown->wait_until_gone("parent")));
    CHECK(teardown->is_removing() == is_last);
    CHECK(places.slots->contains(3));
    branch.reset();
    poll();
    REQUIRE(attempts.size() == 1);
    end_attempt(true);
    CHECK(places.slots->empty());
    CHECK(teardown->staying().empty());
}

TEST_CASE_METHOD(
    TeardownFixture, "the server's end does not wait for branches", "[service][teardown]") {
    const auto parent = std::make_shared<FamilyMember>(0);
    const auto branch = std::make_shared<FamilyMember>(parent);
    begin("parent", 0, parent);
    teardown->begin_shutdown();
    begin("branch", 1, branch);
    CHECK(steps.back() == "branch remove");
    teardown->finish();
    CHECK(steps.back() == "destroyed");
}

TEST_CASE_METHOD(
    TeardownFixture, "callers wait for one session, or for any", "[service][teardown]") {
    CHECK(*wait(teardown->wait_until_gone("a")));
    CHECK(*wait(teardown->wait_for_any(SessionTeardown::TimePoint::max())));
    begin("a", 0);
    begin("b", 1);
    const auto a = wait(teardown->wait_until_gone("a"));
    const auto b = wait(teardown->wait_until_gone("b"));
    const auto any = wait(teardown->wait_for_any(SessionTeardown::TimePoint::max()));
    CHECK_FALSE(*a);
    CHECK_FALSE(*any);
    end_attempt(true);
    CHECK(*a);
    CHECK(*any);
    CHECK_FALSE(*b);
    CHECK(*wait(teardown->wait_for_any(std::chrono::steady_clock::now())));  // the deadline
    CHECK(teardown->is_removing());
    end_attempt(true);
    CHECK(*b);
}

TEST_CASE_METHOD(
    TeardownFixture, "a session that ends with the server goes at once", "[service][teardown]") {
    teardown->begin_shutdown();
    const auto session = std::make_shared<FakeManagedSession>("a", steps);
    SECTION("and is gone") {}
    SECTION("or what is left is the next server's") {
        session->leftovers = Error(ErrorCode::kTimeout, "busy");
    }
    teardown->begin(places.entry(session, 0), {});
    poll();
    CHECK(attempts.empty());
    CHECK(steps.at(1) == "a remove");
    CHECK(steps.size() == (session->leftovers ? 3 : 2));
    CHECK(places.slots->empty());
}

TEST_CASE_METHOD(
    TeardownFixture, "the server's end finishes what is being removed", "[service][teardown]") {
    begin("a", 0);
    const auto waits = wait(teardown->wait_until_gone("a"));
    const auto any = wait(teardown->wait_for_any(SessionTeardown::TimePoint::max()));
    teardown->begin_shutdown();
    steps.clear();
    teardown->finish();
    CHECK(steps == Steps{"waited", "destroyed"});
    poll();
    CHECK(*waits);
    CHECK(*any);
    end_attempt(true);  // its attempt ends later, and nothing waits for it any more
    CHECK(steps.size() == 2);
    teardown->finish();  // again: nothing is left
    CHECK(steps == Steps{"waited", "destroyed", "waited"});
}

}  // namespace
}  // namespace cellkeep::session
