// SPDX-License-Identifier: Apache-2.0
//
// Who waits for which zygote while zygotes are made, and how the waits end when none can be made.
// With real ones: tests/integration/server/test_zygotes.py.
#include "kernel-manager/warm/warm_start.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using cellkeep::Error;
using cellkeep::ErrorCode;
using cellkeep::session::WarmStart;

namespace {

/// A zygote that fails to be made as soon as the test lets it end or it is given up.
class Making {
 public:
    WarmStart::Make maker() {
        return
            [ended = ended_](
                const std::function<bool()>& given_up) -> cellkeep::Result<WarmStart::ZygotePtr> {
                while (ended.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
                    if (given_up()) {
                        return Error(ErrorCode::kCancelled, "given up");
                    }
                    std::this_thread::yield();
                }
                return Error(ErrorCode::kUnavailable, "no");
            };
    }
    void end() { end_.set_value(); }

 private:
    std::promise<void> end_;
    std::shared_future<void> ended_ = end_.get_future().share();
};

struct WarmFixture {
    boost::asio::io_context io;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
        io.get_executor()};  // the makers' threads are none
    Making full;
    Making bare;
    int ready = 0;
    std::vector<std::string> lines;
    std::shared_ptr<WarmStart> warm = WarmStart::create(
        io,
        {.make_full = full.maker(),
         .make_bare = bare.maker(),
         .on_ready = [this] { ++ready; },
         .log = [this](const std::string& line) { lines.push_back(line); }});

    /// Runs until the condition holds.
    void run_until(const std::function<bool()>& condition) {
        while (!condition()) {
            REQUIRE(io.run_one_for(std::chrono::seconds(20)) == 1);
        }
    }
    /// Asks for a zygote now; set when the answer comes, which has no zygote since none can be
    /// made.
    std::shared_ptr<bool> ask() {
        auto answered = std::make_shared<bool>(false);
        boost::asio::co_spawn(
            io,
            [warm = warm] { return warm->take(); },
            [answered](const std::exception_ptr& thrown, const WarmStart::ZygotePtr& zygote) {
                *answered = !thrown && zygote == nullptr;
            });
        return answered;
    }
};

}  // namespace

TEST_CASE("a session waits for the bare zygote and not for the full one", "[session][zygote]") {
    WarmFixture fixture;
    fixture.warm->begin();
    const auto answered = fixture.ask();
    fixture.io.poll();
    CHECK_FALSE(*answered);
    fixture.bare.end();
    fixture.run_until([&] { return *answered; });
    CHECK(fixture.ready == 0);
    CHECK_FALSE(fixture.warm->ready());
    fixture.full.end();
    fixture.run_until([&] { return fixture.ready == 1; });
    fixture.warm->stop();
}

TEST_CASE(
    "it is ready when the first full zygote has failed, and says so once", "[session][zygote]") {
    WarmFixture fixture;
    fixture.warm->begin();
    bool waited = false;
    boost::asio::co_spawn(
        fixture.io,
        [&] { return fixture.warm->wait_until_ready(); },
        [&](const std::exception_ptr& thrown) { waited = !thrown; });
    fixture.io.poll();
    CHECK_FALSE(waited);
    fixture.full.end();
    fixture.run_until([&] { return waited && fixture.ready == 1; });
    CHECK(fixture.warm->ready());
    // The keeper no longer waits for the bare one: it asked its maker to give up.
    const auto answered = fixture.ask();
    fixture.run_until([&] { return *answered; });
    CHECK(fixture.lines == std::vector<std::string>{"no zygote could be made: no"});
    fixture.warm->stop();
    fixture.warm.reset();
    fixture.io.poll();
    CHECK(fixture.ready == 1);
}

TEST_CASE("without a bare zygote a session waits for the full one", "[session][zygote]") {
    WarmFixture fixture;
    fixture.warm->stop();
    fixture.warm = WarmStart::create(
        fixture.io,
        {.make_full = fixture.full.maker(),
         .make_bare = {},
         .on_ready = [&] { ++fixture.ready; },
         .log = [&](const std::string& line) { fixture.lines.push_back(line); }});
    fixture.warm->begin();
    const auto answered = fixture.ask();
    fixture.io.poll();
    CHECK_FALSE(*answered);
    fixture.full.end();
    fixture.run_until([&] { return *answered && fixture.ready == 1; });
    CHECK(fixture.lines == std::vector<std::string>{"no zygote could be made: no"});
    fixture.warm->fork_succeeded(nullptr);
    fixture.warm->fork_failed(nullptr);
    fixture.warm->retire();
    fixture.warm->stop();
}

TEST_CASE("the end of the server ends all waits, and nothing is ready", "[session][zygote]") {
    WarmFixture fixture;
    fixture.warm->begin();
    const auto answered = fixture.ask();
    fixture.io.poll();
    CHECK_FALSE(*answered);
    fixture.warm->stop();
    fixture.run_until([&] { return *answered; });
    CHECK(fixture.ready == 0);
    CHECK_FALSE(fixture.warm->ready());
    CHECK(fixture.lines.empty());
}
