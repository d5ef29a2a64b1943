// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/network_pool.hpp"

#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <set>
#include <utility>

namespace cellkeep::test {

using sandbox::kNetworksReadyMax;
using sandbox::NetworkNamespace;
using sandbox::NetworkPool;

namespace {

constexpr std::chrono::seconds kPatience{20};

Result<NetworkNamespace> fake_network() {
    BOOST_OUTCOME_TRY(auto pipe, make_pipe());
    return NetworkNamespace{std::move(pipe.read_end), std::move(pipe.write_end)};
}

}  // namespace

TEST_CASE("a pool of networks is filled up to its bound and no further, and refilled") {
    std::atomic<std::size_t> made = 0;
    NetworkPool pool([&] {
        ++made;
        return fake_network();
    });
    CHECK(pool.settle() == 0);
    CHECK(made == 0);  // none was requested yet
    for (std::size_t taken = 1; taken <= 2 * kNetworksReadyMax; ++taken) {
        REQUIRE(pool.take(kPatience).has_value());
        CHECK(pool.settle() == kNetworksReadyMax);
        CHECK(made == kNetworksReadyMax + taken);
    }
}

TEST_CASE("a network is handed out once only") {
    NetworkPool pool(&fake_network);
    std::vector<NetworkNamespace> held;
    std::set<int> seen;
    for (std::size_t i = 0; i < 3 * kNetworksReadyMax; ++i) {
        auto taken = pool.take(kPatience);
        REQUIRE(taken.has_value());
        CHECK(seen.insert(taken.value().descriptor.get()).second);
        CHECK(seen.insert(taken.value().listener.get()).second);
        held.push_back(std::move(taken).value());
    }
}

TEST_CASE("a network that cannot be made is an error at once, and tried again when asked for") {
    std::atomic<bool> broken = true;
    std::atomic<int> attempts = 0;
    NetworkPool pool([&]() -> Result<NetworkNamespace> {
        ++attempts;
        if (broken) {
            return Error::from_errno(ENOSPC, "make a network namespace");
        }
        return fake_network();
    });
    for (int asked = 1; asked <= 3; ++asked) {
        const auto refused = pool.take(kPatience);
        REQUIRE(refused.has_error());
        CHECK(refused.error().errno_value() == ENOSPC);
        CHECK(pool.settle() == 0);
        CHECK(attempts == asked);  // no attempt without a request
    }
    broken = false;
    CHECK(pool.take(kPatience).has_value());
}

TEST_CASE("a wait for a network ends at its time limit, and stopping ends all waits") {
    std::promise<void> release;
    std::shared_future<void> released = release.get_future().share();
    NetworkPool slow([=] {
        released.wait();
        return fake_network();
    });
    const auto late = slow.take(std::chrono::milliseconds(1));
    REQUIRE(late.has_error());
    CHECK(late.error().code() == ErrorCode::kTimeout);
    release.set_value();
    CHECK(slow.stop());
    CHECK(slow.stop());  // idempotent
    const auto stopped = slow.take(kPatience);
    REQUIRE(stopped.has_error());
    CHECK(stopped.error().code() == ErrorCode::kCancelled);
    CHECK(slow.settle() == 0);
}

TEST_CASE("a forked child gets no network of its parent, and ends without an error") {
    NetworkPool pool(&fake_network);
    REQUIRE(pool.take(kPatience).has_value());
    const pid_t child = ::fork();
    if (child == 0) {
        const auto taken = pool.take(kPatience);
        ::_exit(
            !pool.stop() && taken.has_error() && taken.error().code() == ErrorCode::kUnavailable
                ? 0
                : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

}  // namespace cellkeep::test
