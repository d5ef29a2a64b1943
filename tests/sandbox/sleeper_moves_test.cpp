// SPDX-License-Identifier: Apache-2.0
//
// Where copies sleep once they have been moved. As root: without cgroups they are not moved.
#include "kernel-manager/session/checkpoints/sleeper_moves.hpp"

#include "tests/sandbox/family.hpp"
#include "tests/sandbox/fixture.hpp"
#include "tests/support/held_process.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <unistd.h>

#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>

namespace cellkeep::test {

using sandbox::kSleepingGroup;
using sandbox::Sandbox;
using session::SleeperMoves;

namespace {

/// What the thread does not begin before release().
class Hold {
 public:
    explicit Hold(WorkThread& thread) {
        thread.run([released = released_.get_future().share()] {
            released.wait();
            return WorkThread::Slice::kDone;
        });
    }
    void release() { released_.set_value(); }

 private:
    std::promise<void> released_;
};

struct Fixture {
    boost::asio::io_context io{1};
    Sandbox sandbox = make_sandbox();
    std::shared_ptr<WorkThread> thread = std::make_shared<WorkThread>();
    SleeperMoves moves{
        io,
        sandbox,
        thread,
        []() -> boost::asio::awaitable<void> { co_return; },
        [] { return std::make_shared<int>(); }};

    sandbox::Worker add() {
        const Family family = start_family(sandbox);
        sandbox::Worker sleeper = must_adopt(sandbox, family.sibling, kSleepingGroup, 0);
        moves.add(sleeper.pidfd);
        moves.begin();
        io.restart();
        (void)io.poll();  // the move is asked for now
        return sleeper;
    }
    /// False if somebody is still on the way when nothing is left to do.
    bool wait() {
        bool moved = false;
        boost::asio::co_spawn(
            io,
            [this, &moved]() -> boost::asio::awaitable<void> {
                co_await moves.wait();
                moved = true;
            },
            boost::asio::detached);
        io.restart();
        (void)io.run();
        return moved;
    }
};

bool is_among_sleepers(const sandbox::Worker& worker) {
    std::ifstream in("/proc/" + std::to_string(pid_of(worker.pidfd.get())) + "/cgroup");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return text.find("/workers-" + std::to_string(kSleepingGroup) + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("a copy that comes while others are moved is moved behind them") {
    if (::geteuid() != 0) {
        return;
    }
    Fixture f;
    Hold hold(*f.thread);
    const auto first = f.add();
    const auto second = f.add();
    CHECK_FALSE(is_among_sleepers(first));
    CHECK_FALSE(is_among_sleepers(second));
    hold.release();
    CHECK(f.wait());
    CHECK(is_among_sleepers(first));
    CHECK(is_among_sleepers(second));
    CHECK_FALSE(f.sandbox.has_stray_sleepers());
    // Everybody else may be killed now.
    require_ok(f.sandbox.begin_sweep(0));
    while (wait_event(f.sandbox).kind != sandbox::SandboxEvent::Kind::kGroupSwept) {
    }
    CHECK(is_among_sleepers(first));
    CHECK(is_among_sleepers(second));
    require_ok(f.sandbox.destroy(kPatience));
}

TEST_CASE("without a copy there is nothing to wait for") {
    Fixture f;
    f.moves.begin();
    CHECK(f.wait());
    require_ok(f.sandbox.destroy(kPatience));
}

}  // namespace cellkeep::test
