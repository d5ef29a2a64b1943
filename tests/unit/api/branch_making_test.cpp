// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/branch_making.hpp"

#include "tests/unit/service/fake_session_service.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api::test {
namespace {

using Made = BranchMaking::Made;

constexpr std::size_t kMany = 3 * kBranchesMadeAtOnce + 1;

struct BranchMakingFixture {
    session::test::FakeSessionService sessions;
    std::shared_ptr<std::vector<Made>> made;

    BranchMakingFixture() { (void)sessions.add(); }

    void begin(BranchesOrder order) {
        auto making = std::make_shared<BranchMaking>(
            sessions.io.get_executor(), sessions, "ses_1", "ckp_1", std::move(order));
        boost::asio::co_spawn(sessions.io, finish(std::move(making), made), boost::asio::detached);
        poll();
    }
    void begin(std::size_t count) {
        BranchesOrder order;
        order.count = count;
        begin(std::move(order));
    }
    void poll() {
        sessions.io.restart();
        (void)sessions.io.poll();
    }
    static boost::asio::awaitable<void> finish(
        std::shared_ptr<BranchMaking> making, std::shared_ptr<std::vector<Made>>& made) {
        auto all = co_await BranchMaking::make_all(std::move(making));
        made = std::make_shared<std::vector<Made>>(std::move(all));
    }
};

std::size_t count_errors(const std::vector<Made>& made, ErrorCode code) {
    return static_cast<std::size_t>(
        std::count_if(made.begin(), made.end(), [code](const Made& one) {
            return one.has_error() && one.error().code() == code;
        }));
}

TEST_CASE("branches are made some at once and answered in their order", "[agent][branches]") {
    BranchMakingFixture fixture;
    fixture.sessions.gate = std::make_shared<Completion<bool>>(fixture.sessions.io);
    BranchesOrder order;
    order.count = kMany;
    order.labels = {"a", "b"};
    order.reseed = false;
    fixture.begin(std::move(order));
    CHECK(fixture.sessions.branched.size() == kBranchesMadeAtOnce);
    CHECK_FALSE(fixture.made);
    fixture.sessions.gate->set(true);
    fixture.poll();
    REQUIRE(fixture.made);
    REQUIRE(fixture.made->size() == kMany);
    CHECK(fixture.sessions.branched.size() == kMany);
    std::vector<std::string> labels;
    for (const Made& one : *fixture.made) {
        REQUIRE(one.has_value());
        const auto branch = one.value()->info().branch;
        REQUIRE(branch.has_value());
        CHECK(branch->parent == "ses_1");
        CHECK(branch->checkpoint == "ckp_1");
        labels.push_back(branch->label.value_or(""));
    }
    CHECK(labels[0] == "a");
    CHECK(labels[1] == "b");
    CHECK(std::count(labels.begin(), labels.end(), "") == static_cast<long>(kMany - 2));
    CHECK_FALSE(fixture.sessions.branched[0].reseed);
}

TEST_CASE("without room for one branch no other is begun", "[agent][branches]") {
    BranchMakingFixture fixture;
    fixture.sessions.failure = Error(ErrorCode::kLimitExceeded, "too many sessions");
    fixture.begin(kMany);
    REQUIRE(fixture.made);
    CHECK(count_errors(*fixture.made, ErrorCode::kLimitExceeded) == kMany);
    CHECK(fixture.sessions.branched.size() <= kBranchesMadeAtOnce);
}

TEST_CASE("what one branch fails for is its own", "[agent][branches]") {
    BranchMakingFixture fixture;
    fixture.sessions.failure = Error(ErrorCode::kConflict, "busy");
    fixture.begin(kMany);
    REQUIRE(fixture.made);
    CHECK(count_errors(*fixture.made, ErrorCode::kConflict) == kMany);
    CHECK(fixture.sessions.branched.size() == kMany);
}

TEST_CASE("one branch is made alone", "[agent][branches]") {
    BranchMakingFixture fixture;
    fixture.begin(1);
    REQUIRE(fixture.made);
    CHECK(fixture.made->size() == 1);
    CHECK(fixture.sessions.branched.size() == 1);
}

}  // namespace
}  // namespace cellkeep::api::test
