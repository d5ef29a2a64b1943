// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/connection/arrival_memory.hpp"

#include "tests/unit/http/test_server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::http::test {
namespace {

namespace asio = boost::asio;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

/// Of a wait that must not end by its time.
constexpr std::chrono::hours kHour{1};

struct ArrivalHarness {
    asio::io_context io;
    ArrivalMemory memory;

    explicit ArrivalHarness(std::chrono::milliseconds wait_max = kHour)
        : memory({.bytes_max = 100, .principal_bytes_max = 40, .wait_max = wait_max}) {}

    /// The answer is empty as long as the claim waits.
    std::shared_ptr<std::optional<bool>> grow(ArrivalMemory::Claim& claim, std::size_t bytes) {
        auto answer = std::make_shared<std::optional<bool>>();
        asio::co_spawn(io, claim.grow_to(bytes), [answer](std::exception_ptr thrown, bool granted) {
            REQUIRE_FALSE(thrown);
            *answer = granted;
        });
        settle();
        return answer;
    }
    void settle() {
        io.restart();
        while (io.poll() > 0) {
        }
    }
};

}  // namespace

TEST_CASE("what a claim held can be kept longer than the claim", "[http]") {
    ArrivalHarness harness;
    auto claim = harness.memory.make_claim("a");
    CHECK(*harness.grow(claim, 30) == true);
    {
        const auto kept = claim.split();
        CHECK(kept.held() == 30);
        CHECK(claim.held() == 0);
        CHECK(harness.memory.used() == 30);
        CHECK(*harness.grow(claim, 10) == true);
        const auto waiting = harness.grow(claim, 11);
        CHECK_FALSE(waiting->has_value());
        CHECK(harness.memory.waiting() == 1);
        claim.release();
    }
    harness.settle();
    CHECK(harness.memory.used() == 1);  // what the claim waited for
}

TEST_CASE("limits::kArrivalPrincipalBytesMax: a principal's claims wait for its own", "[http]") {
    ArrivalHarness harness;
    auto first = harness.memory.make_claim("a");
    auto second = harness.memory.make_claim("a");
    auto third = harness.memory.make_claim("a");
    auto other = harness.memory.make_claim("b");
    CHECK(*harness.grow(first, 40) == true);
    const auto waiting = harness.grow(second, 30);
    const auto behind = harness.grow(third, 1);
    CHECK_FALSE(waiting->has_value());
    CHECK_FALSE(behind->has_value());
    CHECK(harness.memory.waiting() == 2);
    CHECK(*harness.grow(other, 40) == true);  // another principal need not wait
    first.release();
    harness.settle();
    CHECK(*waiting == true);
    CHECK(*behind == true);
    CHECK(second.held() == 30);
    CHECK(harness.memory.used() == 71);
}

TEST_CASE("limits::kArrivalBytesMax: principals that wait take turns", "[http]") {
    ArrivalHarness harness;
    auto a = harness.memory.make_claim("a");
    auto b = harness.memory.make_claim("b");
    auto c = harness.memory.make_claim("c");
    CHECK(*harness.grow(a, 40) == true);
    CHECK(*harness.grow(b, 40) == true);
    CHECK(*harness.grow(c, 20) == true);
    auto d1 = harness.memory.make_claim("d");
    auto d2 = harness.memory.make_claim("d");
    auto e = harness.memory.make_claim("e");
    const auto first_of_d = harness.grow(d1, 20);
    const auto second_of_d = harness.grow(d2, 20);
    const auto of_e = harness.grow(e, 20);
    CHECK_FALSE(first_of_d->has_value());
    c.release();
    harness.settle();
    CHECK(*first_of_d == true);
    CHECK_FALSE(second_of_d->has_value());
    d1.release();
    harness.settle();
    CHECK(*of_e == true);
    CHECK_FALSE(second_of_d->has_value());
    a.release();
    harness.settle();
    CHECK(*second_of_d == true);
}

TEST_CASE("what no principal may ever have is refused at once", "[http]") {
    ArrivalHarness harness;
    auto claim = harness.memory.make_claim("a");
    CHECK(*harness.grow(claim, 41) == false);
    CHECK(claim.held() == 0);
    CHECK(*harness.grow(claim, 40) == true);
    CHECK(*harness.grow(claim, 41) == false);
    CHECK(claim.held() == 40);
    CHECK(*harness.grow(claim, 10) == true);  // it has more already
    CHECK(harness.memory.used() == 40);
}

TEST_CASE("limits::kArrivalWaitMax: a claim that waited too long gets nothing more", "[http]") {
    ArrivalHarness harness(std::chrono::milliseconds(20));
    auto first = harness.memory.make_claim("a");
    auto second = harness.memory.make_claim("a");
    CHECK(*harness.grow(first, 30) == true);
    CHECK(*harness.grow(second, 10) == true);
    const auto refused = harness.grow(second, 20);
    harness.io.restart();
    harness.io.run();
    CHECK(*refused == false);
    CHECK(second.held() == 10);
    CHECK(harness.memory.waiting() == 0);
    first.release();
    CHECK(*harness.grow(second, 20) == true);
}

TEST_CASE("a claim that gives up lets those behind it go on", "[http]") {
    ArrivalHarness harness(std::chrono::milliseconds(20));
    auto first = harness.memory.make_claim("a");
    auto large = harness.memory.make_claim("a");
    CHECK(*harness.grow(first, 30) == true);
    const auto refused = harness.grow(large, 20);
    // Its own wait begins later and ends later, so it is granted by the other's end.
    auto small = harness.memory.make_claim("a");
    const auto behind = harness.grow(small, 10);
    CHECK_FALSE(behind->has_value());
    harness.io.restart();
    harness.io.run();
    CHECK(*refused == false);
    CHECK(*behind == true);
    CHECK(harness.memory.used() == 40);
}

TEST_CASE("close() ends all waits, and no claim grows afterwards", "[http]") {
    ArrivalHarness harness;
    auto first = harness.memory.make_claim("a");
    auto second = harness.memory.make_claim("a");
    CHECK(*harness.grow(first, 40) == true);
    const auto waiting = harness.grow(second, 1);
    harness.memory.close();
    harness.settle();
    CHECK(*waiting == false);
    first.release();
    CHECK(*harness.grow(second, 1) == false);
    CHECK(harness.memory.used() == 0);
}

TEST_CASE("a claim gives back what it held when it ends or gets another's place", "[http]") {
    ArrivalHarness harness;
    {
        auto first = harness.memory.make_claim("a");
        auto second = harness.memory.make_claim("b");
        CHECK(*harness.grow(first, 10) == true);
        CHECK(*harness.grow(second, 20) == true);
        first = std::move(second);
        CHECK(first.held() == 20);
        CHECK(harness.memory.used() == 20);
    }
    CHECK(harness.memory.used() == 0);
}

TEST_CASE("a claim that waits can vanish with its coroutine", "[http]") {
    auto harness = std::make_unique<ArrivalHarness>();
    ArrivalMemory memory = harness->memory;
    auto first = memory.make_claim("a");
    auto second = memory.make_claim("a");
    CHECK(*harness->grow(first, 40) == true);
    CHECK_FALSE(harness->grow(second, 1)->has_value());
    CHECK(memory.waiting() == 1);
    harness.reset();
    CHECK(memory.waiting() == 0);
    first.release();
    CHECK(memory.used() == 0);
}

TEST_CASE(
    "limits::kArrivalFreeBytesMax: a longer body needs memory of its principal's share",
    "[http][connection]") {
    ConnectionLimits limits;
    limits.arrival_free_bytes_max = 100;
    limits.arrival_principal_bytes_max = 500;
    limits.arrival_wait_max = std::chrono::milliseconds(20);
    const TestServer server(limits);
    RawClient holding(server.port());
    holding.send(request_text("POST", "/echo", "Content-Length: 400\r\n") + std::string(101, 'x'));
    // Until the server has the claim, the second body may be read: then it is sent again.
    std::string answer;
    do {
        RawClient refused(server.port());
        refused.send(
            request_text("POST", "/echo", "Content-Length: 300\r\nConnection: close\r\n") +
            std::string(300, 'y'));
        answer = refused.read_all();
    } while (answer.starts_with("HTTP/1.1 200 "));
    CHECK_THAT(answer, StartsWith("HTTP/1.1 503 "));
    CHECK_THAT(answer, Contains("Retry-After: "));
    RawClient small(server.port());
    small.send(
        request_text("POST", "/echo", "Content-Length: 100\r\nConnection: close\r\n") +
        std::string(100, 'z'));
    CHECK_THAT(small.read_all(), StartsWith("HTTP/1.1 200 "));
    holding.send(std::string(299, 'x') + request_text("GET", "/ok", "Connection: close\r\n"));
    const std::string held = holding.read_all();
    CHECK_THAT(held, StartsWith("HTTP/1.1 200 ") && Contains(std::string(400, 'x')));
    RawClient again(server.port());
    again.send(
        request_text("POST", "/echo", "Content-Length: 500\r\nConnection: close\r\n") +
        std::string(500, 'y'));
    CHECK_THAT(again.read_all(), StartsWith("HTTP/1.1 200 "));
}

}  // namespace cellkeep::http::test
