// SPDX-License-Identifier: Apache-2.0
//
// What a keeper does when no zygote can be made. With real ones: tests/integration/session.
#include "kernel-manager/warm/zygote_keeper.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <atomic>
#include <exception>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

using cellkeep::Error;
using cellkeep::ErrorCode;
using cellkeep::session::kZygoteRetryFirst;
using cellkeep::session::ZygoteBounds;
using cellkeep::session::ZygoteKeeper;

namespace {

struct KeeperFixture {
    explicit KeeperFixture(const ZygoteBounds& with = {}) : bounds(with) {}

    boost::asio::io_context io;
    std::atomic<int> tried = 0;  // the keeper's thread makes them
    std::vector<std::string> lines;
    ZygoteBounds bounds;
    std::shared_ptr<ZygoteKeeper> keeper = ZygoteKeeper::create(
        io,
        {.make = [this](const std::function<bool()>& /*given_up*/)
             -> cellkeep::Result<ZygoteKeeper::ZygotePtr> {
             ++tried;
             return Error(ErrorCode::kUnavailable, "no");
         },
         .log = [this](const std::string& line) { lines.push_back(line); }},
        bounds);

    void wait_for_first() {
        bool waited = false;
        boost::asio::co_spawn(
            io,
            [this] { return keeper->wait_for_first(); },
            [&](const std::exception_ptr& thrown) { waited = !thrown; });
        const auto work = boost::asio::make_work_guard(io);  // the keeper's thread is none
        while (!waited) {
            REQUIRE(io.run_one_for(std::chrono::seconds(20)) == 1);
        }
    }
};

}  // namespace

TEST_CASE("without a zygote no session waits for one", "[session][zygote]") {
    KeeperFixture fixture;
    CHECK(fixture.keeper->take() == nullptr);
    fixture.wait_for_first();  // none is being made
    CHECK(fixture.tried == 0);
}

TEST_CASE("a zygote that cannot be made is not tried in a loop", "[session][zygote]") {
    KeeperFixture fixture;
    fixture.keeper->begin();
    fixture.keeper->begin();  // one is being made
    fixture.wait_for_first();
    CHECK(fixture.tried == 1);
    CHECK(fixture.keeper->take() == nullptr);
    fixture.keeper->begin();  // it waits for its time
    fixture.io.restart();
    fixture.io.run_for(kZygoteRetryFirst / 4);
    CHECK(fixture.tried == 1);
    CHECK(fixture.lines == std::vector<std::string>{"no zygote could be made: no"});
    fixture.keeper->stop();
    fixture.io.restart();
    fixture.io.run();  // nothing is left to wait for
    fixture.keeper->begin();
    CHECK(fixture.tried == 1);
}

TEST_CASE("a zygote that is to be tried once is not tried again", "[session][zygote]") {
    KeeperFixture fixture({.tries_again = false});
    fixture.keeper->begin();
    fixture.wait_for_first();
    fixture.io.restart();
    fixture.io.run();  // nothing is left to wait for
    CHECK(fixture.tried == 1);
    CHECK(fixture.lines.size() == 1);
}

TEST_CASE(
    "a wait for a zygote ends when the server ends, and the zygote is given up",
    "[session][zygote]") {
    boost::asio::io_context io;
    std::promise<bool> asked;
    auto gave_up = asked.get_future();
    auto keeper = ZygoteKeeper::create(
        io,
        {.make = [&](const std::function<bool()>& given_up)
             -> cellkeep::Result<ZygoteKeeper::ZygotePtr> {
             while (!given_up()) {
                 std::this_thread::yield();
             }
             asked.set_value(true);
             return Error(ErrorCode::kCancelled, "given up");
         },
         .log = [](const std::string& /*line*/) { FAIL("an end of the server logs nothing"); }});
    bool told = false;
    keeper->begin();
    boost::asio::co_spawn(
        io,
        [&] { return keeper->wait_for_first(); },
        [&](const std::exception_ptr& thrown) { told = !thrown; });
    io.poll();
    CHECK_FALSE(told);
    keeper->stop();
    io.restart();
    io.run();
    CHECK(told);
    CHECK(gave_up.get());
    keeper.reset();
}

TEST_CASE("it is tried again after a while", "[session][zygote]") {
    KeeperFixture fixture;
    const auto work = boost::asio::make_work_guard(fixture.io);  // the keeper's thread is none
    fixture.keeper->begin();
    while (fixture.lines.size() < 2) {
        REQUIRE(fixture.io.run_one_for(std::chrono::seconds(20)) == 1);
    }
    CHECK(fixture.tried == 2);
}
