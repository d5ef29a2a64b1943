// SPDX-License-Identifier: Apache-2.0
//
// Which spare fits which request, how often a failed start is tried again, and the exclusive claim.
// Pools with real sessions: tests/integration/session/prespawn_test.cpp.
#include "kernel-manager/service/spare_pool.hpp"

#include "kernel-manager/service/claim.hpp"
#include "kernel-manager/warm/retry_delay.hpp"
#include "tests/unit/service/fake_managed_session.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/catch.hpp>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

using cellkeep::Error;
using cellkeep::ErrorCode;
using cellkeep::Result;
using cellkeep::session::Claim;
using cellkeep::session::fits;
using cellkeep::session::kSpareRetryFirst;
using cellkeep::session::kSpareRetryMost;
using cellkeep::session::RetryDelay;
using cellkeep::session::SessionOptions;
using cellkeep::session::SpareDemand;
using cellkeep::session::SparePool;
using namespace std::chrono_literals;

TEST_CASE("a spare fits a request for the same sandbox", "[session][prespawn]") {
    const SessionOptions spare;
    SessionOptions asked;
    CHECK(fits(spare, asked));
    SECTION("what the session itself enforces may differ") {
        asked.limits.wall = 1ms;
        asked.limits.cpu = 1ms;
        asked.limits.idle = 1s;
        asked.limits.executions = 3;
        asked.cull.busy = true;
        asked.owner = "somebody";
        asked.kernel_id = "x";
        asked.working_directory = "here";
        asked.env = {{"KERNEL_USERNAME", "ada"}, {"TZ", "Asia/Tokyo"}, {"HOME_PAGE", "x"}};
        CHECK(fits(spare, asked));
    }
    SECTION("what its sandbox was made with may not") {
        SECTION("memory") {
            asked.limits.memory_mb += 1;
        }
        SECTION("processors") {
            asked.limits.cpu_cores = 2;
        }
        SECTION("disk") {
            asked.limits.disk_mb += 1;
        }
        SECTION("processes") {
            asked.limits.processes += 1;
        }
        SECTION("language") {
            asked.language = "other";
        }
        SECTION("environment") {
            asked.environment = "other";
        }
        CHECK_FALSE(fits(spare, asked));
    }
    SECTION("nor what is only read when a process starts") {
        for (const char* name :
             {"PYTHONHASHSEED",
              "LD_PRELOAD",
              "LANG",
              "LC_ALL",
              "MALLOC_ARENA_MAX",
              "OPENBLAS_NUM_THREADS",
              "OMP_NUM_THREADS",
              "MPLBACKEND"}) {
            asked.env = {{name, "1"}};
            CHECK_FALSE(fits(spare, asked));
        }
    }
}

TEST_CASE("what fails is tried again ever more rarely", "[session][prespawn]") {
    RetryDelay delay(kSpareRetryFirst, kSpareRetryMost);
    auto last = delay.take();
    CHECK(last == kSpareRetryFirst);
    for (int i = 0; i < 20; ++i) {
        const auto next = delay.take();
        CHECK(next == std::min(last * 2, kSpareRetryMost));
        last = next;
    }
    CHECK(last == kSpareRetryMost);
    delay.reset();
    CHECK(delay.take() == kSpareRetryFirst);
}

TEST_CASE("a few are made at a time, of the first kind first", "[session][prespawn]") {
    boost::asio::io_context io;
    SessionOptions large;
    large.limits.memory_mb *= 2;
    std::vector<std::uint64_t> asked;
    std::size_t room = 100;
    const auto pool = SparePool::create(
        io,
        SpareDemand({{{}, 2}, {large, 5}}, 0),
        {.make = [&](SessionOptions options) -> boost::asio::awaitable<Result<SparePool::Spare>> {
             asked.push_back(options.limits.memory_mb);
             boost::asio::steady_timer never(io, boost::asio::steady_timer::time_point::max());
             co_await never.async_wait(boost::asio::use_awaitable);
             co_return Error(ErrorCode::kUnavailable, "no");
         },
         .discard = [](const SparePool::Spare& /*spare*/) {},
         .has_room = [&](std::size_t coming) { return coming < room; },
         .log = [](const std::string& /*line*/) {}});
    SECTION("and no more than that") {
        pool->fill();
        pool->fill();
        io.run_for(10ms);
        CHECK(asked == std::vector<std::uint64_t>{512, 512, 1024});
        static_assert(cellkeep::session::kSparesMadeAtOnce == 3);
        CHECK(pool->is_making());
    }
    SECTION("nor than there is room for") {
        room = 1;
        pool->fill();
        io.run_for(10ms);
        CHECK(asked == std::vector<std::uint64_t>{512});
    }
}

TEST_CASE("spares of a former environment are not handed out", "[session][prespawn]") {
    using cellkeep::session::test::FakeManagedSession;
    boost::asio::io_context io;
    cellkeep::session::test::Steps steps;
    int made = 0;
    int discarded = 0;
    std::shared_ptr<boost::asio::steady_timer> gate;
    const auto pool = SparePool::create(
        io,
        SpareDemand({{{}, 1}}, 0),
        {.make =
             [&](SessionOptions /*options*/) -> boost::asio::awaitable<Result<SparePool::Spare>> {
             ++made;
             if (gate) {
                 boost::system::error_code cancelled;
                 co_await gate->async_wait(
                     boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
             }
             co_return std::make_shared<FakeManagedSession>("ses_" + std::to_string(made), steps);
         },
         .discard = [&](const SparePool::Spare& /*spare*/) { ++discarded; },
         .has_room = [](std::size_t /*coming*/) { return true; },
         .log = [](const std::string& /*line*/) {}});
    SECTION("those that are ready") {
        pool->fill();
        io.poll();
        CHECK(pool->size() == 1);
        pool->renew();
        CHECK(discarded == 1);
        io.restart();
        io.poll();
    }
    SECTION("those that are being made") {
        gate = std::make_shared<boost::asio::steady_timer>(
            io, boost::asio::steady_timer::time_point::max());
        pool->fill();
        io.poll();
        CHECK(pool->is_making());
        pool->renew();
        const auto first = std::exchange(gate, nullptr);
        first->cancel();
        io.restart();
        io.poll();
        CHECK(discarded == 1);
    }
    CHECK(made == 2);
    CHECK(pool->size() == 1);
    pool->stop();
    CHECK(discarded == 2);
}

TEST_CASE("while a client is served no spare is made, but only for a time", "[session][prespawn]") {
    boost::asio::io_context io;
    int tried = 0;
    const auto pool = SparePool::create(
        io,
        SpareDemand({{{}, 1}}, 5),
        {.make =
             [&](SessionOptions /*options*/) -> boost::asio::awaitable<Result<SparePool::Spare>> {
             ++tried;
             boost::asio::steady_timer never(io, boost::asio::steady_timer::time_point::max());
             co_await never.async_wait(boost::asio::use_awaitable);
             co_return Error(ErrorCode::kUnavailable, "no");
         },
         .discard = [](const SparePool::Spare& /*spare*/) {},
         .has_room = [](std::size_t /*coming*/) { return true; },
         .log = [](const std::string& /*line*/) {}});
    {
        const SparePool::Asking one(pool, {});
        {
            const SparePool::Asking two(pool, {});
            pool->fill();
        }
        pool->fill();
        io.poll();
        CHECK(tried == 0);
        SECTION("it is made when the last has gone") {}
        SECTION("or when that takes too long") {
            boost::asio::steady_timer timer(io, cellkeep::session::kSpareDeferralMost);
            bool over = false;
            timer.async_wait([&](const boost::system::error_code& /*error*/) {
                pool->fill();
                over = true;
            });
            io.restart();
            while (!over && io.run_one() > 0) {
            }
            io.poll();
            CHECK(tried == 2);  // as many as have asked
        }
    }
    io.restart();
    io.poll();
    CHECK(tried == 2);
    pool->stop();
}

TEST_CASE(
    "the pool reports when no spare is left to make, or none can be made", "[session][prespawn]") {
    boost::asio::io_context io;
    std::size_t wanted = 0;
    bool room = true;
    int settled = 0;
    const auto make_pool = [&] {
        return SparePool::create(
            io,
            SpareDemand({{{}, wanted}}, 0),
            {.make = [&](SessionOptions /*options*/)
                 -> boost::asio::awaitable<Result<SparePool::Spare>> {
                 CHECK(settled == 0);
                 co_return Error(ErrorCode::kUnavailable, "no");
             },
             .discard = [](const SparePool::Spare& /*spare*/) {},
             .has_room = [&](std::size_t /*coming*/) { return room; },
             .log = [](const std::string& /*line*/) {},
             .on_settled = [&] { ++settled; }});
    };
    SECTION("none is wanted") {}
    SECTION("there is no room") {
        wanted = 1;
        room = false;
    }
    SECTION("one was tried and failed") {
        wanted = 1;
    }
    const auto pool = make_pool();
    pool->fill();
    CHECK(settled == (wanted == 1 && room ? 0 : 1));
    io.poll();
    CHECK(settled == 1);
    pool->stop();
}

TEST_CASE("a claim is exclusive while it lives, and moves", "[session][prespawn]") {
    const auto taken = std::make_shared<std::set<std::string>>();
    auto one = Claim<std::string>::take(taken, "a");
    REQUIRE(one.has_value());
    CHECK_FALSE(Claim<std::string>::take(taken, "a").has_value());
    {
        Claim<std::string> moved = std::move(*one);
        one.reset();
        CHECK(moved.value() == "a");
        CHECK(taken->contains("a"));
        moved = Claim<std::string>();
        CHECK_FALSE(taken->contains("a"));
    }
    CHECK(Claim<std::string>::take(taken, "a").has_value());
    CHECK(taken->empty());
}

TEST_CASE("a spare that cannot be made is not tried in a loop", "[session][prespawn]") {
    boost::asio::io_context io;
    int tried = 0;
    int logged = 0;
    const auto pool = SparePool::create(
        io,
        SpareDemand({{{}, 2}}, 0),
        {.make =
             [&](SessionOptions /*options*/) -> boost::asio::awaitable<Result<SparePool::Spare>> {
             ++tried;
             co_return Error(ErrorCode::kUnavailable, "no");
         },
         .discard = [](const SparePool::Spare& /*spare*/) {},
         .has_room = [](std::size_t /*coming*/) { return true; },
         .log = [&](const std::string& /*line*/) { ++logged; }});
    pool->fill();
    io.run_for(kSpareRetryFirst / 2);
    CHECK(tried == 2);  // both at once, and then it waits
    pool->fill();       // as every request for a session does
    io.restart();
    io.run_for(10ms);
    CHECK(tried == 2);
    CHECK(logged == 2);
    CHECK(pool->take({}) == nullptr);
    CHECK_FALSE(pool->give_way());
    pool->stop();
    io.restart();
    io.run();  // nothing is left to wait for
    CHECK(tried == 2);
}

TEST_CASE(
    "a pool of none makes none, and a full server has no room for any", "[session][prespawn]") {
    boost::asio::io_context io;
    int tried = 0;
    const std::size_t count = GENERATE(0U, 3U);
    const auto pool = SparePool::create(
        io,
        SpareDemand({{{}, count}}, 0),
        {.make =
             [&](SessionOptions /*options*/) -> boost::asio::awaitable<Result<SparePool::Spare>> {
             ++tried;
             co_return Error(ErrorCode::kUnavailable, "no");
         },
         .discard = [](const SparePool::Spare& /*spare*/) {},
         .has_room = [](std::size_t /*coming*/) { return false; },
         .log = [](const std::string& /*line*/) {}});
    pool->fill();
    io.run();
    CHECK(tried == 0);
}
