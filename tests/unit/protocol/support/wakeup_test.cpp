// SPDX-License-Identifier: Apache-2.0
#include "protocol/support/wakeup.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include <memory>

namespace {

namespace asio = boost::asio;
using cellkeep::Wakeup;
using cellkeep::Wakeups;

struct WakeupFixture {
    std::unique_ptr<asio::io_context> io = std::make_unique<asio::io_context>(1);
    std::shared_ptr<Wakeup> wakeup = std::make_shared<Wakeup>(*io);
    int woken = 0;

    void wait(int times = 1) {
        asio::co_spawn(*io, count(wakeup, times, woken), asio::detached);
        poll();
    }
    void poll() const {
        io->restart();
        (void)io->poll();
    }
    Wakeups& wakeups() const { return asio::use_service<Wakeups>(*io); }
    static asio::awaitable<void> count(std::shared_ptr<Wakeup> wakeup, int times, int& woken) {
        while (times-- > 0) {
            co_await wakeup->wait();
            ++woken;
        }
    }
};

}  // namespace

TEST_CASE("a coroutine goes on when it is woken, and once", "[support][wakeup]") {
    WakeupFixture fixture;
    fixture.wait(2);
    CHECK(fixture.woken == 0);
    fixture.wakeup->wake();
    fixture.wakeup->wake();
    CHECK(fixture.woken == 0);  // not inside the call
    fixture.poll();
    CHECK(fixture.woken == 1);
    fixture.wakeup->wake();
    fixture.poll();
    CHECK(fixture.woken == 2);
    fixture.wakeup->wake();  // nothing waits any more
    fixture.poll();
    CHECK(fixture.woken == 2);
}

TEST_CASE("what was woken before it waits does not wait", "[support][wakeup]") {
    WakeupFixture fixture;
    fixture.wakeup->wake();
    fixture.wait(2);
    CHECK(fixture.woken == 1);
}

TEST_CASE("inside a turn it goes on at the end of the outermost one", "[support][wakeup]") {
    WakeupFixture fixture;
    fixture.wait();
    {
        const Wakeups::Turn outer(fixture.wakeups());
        {
            const Wakeups::Turn inner(fixture.wakeups());
            fixture.wakeup->wake();
        }
        CHECK(fixture.woken == 0);
    }
    CHECK(fixture.woken == 1);
}

TEST_CASE("one that wakes another at the end of a turn has it go on, too", "[support][wakeup]") {
    WakeupFixture fixture;
    fixture.wait();
    const auto first = std::make_shared<Wakeup>(*fixture.io);
    const auto wake_second = [](std::shared_ptr<Wakeup> own,
                                std::shared_ptr<Wakeup> other) -> asio::awaitable<void> {
        co_await own->wait();
        other->wake();
    };
    asio::co_spawn(*fixture.io, wake_second(first, fixture.wakeup), asio::detached);
    fixture.poll();
    {
        const Wakeups::Turn turn(fixture.wakeups());
        first->wake();
    }
    CHECK(fixture.woken == 1);
}

TEST_CASE("one that still waits goes with its event loop", "[support][wakeup]") {
    const bool woken = GENERATE(false, true);
    WakeupFixture fixture;
    fixture.wait();
    if (woken) {
        fixture.wakeup->wake();  // and the loop does not turn any more
    }
    const std::weak_ptr<Wakeup> alive = std::exchange(fixture.wakeup, nullptr);
    CHECK_FALSE(alive.expired());  // the coroutine has it
    fixture.io.reset();
    CHECK(alive.expired());
    CHECK(fixture.woken == 0);
}

TEST_CASE("a loop with one that waits is not at its end", "[support][wakeup]") {
    WakeupFixture fixture;
    fixture.wait();
    CHECK_FALSE(fixture.io->stopped());
    fixture.wakeup->wake();
    fixture.poll();
    CHECK(fixture.io->stopped());
}
