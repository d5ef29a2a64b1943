// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/resolver.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include <optional>

using namespace cellkeep;
using namespace cellkeep::egress;

namespace {

Address address(const std::string& text) {
    return boost::asio::ip::make_address(text);
}

/// Runs the loop until the answer is there.
std::optional<Allowed<Resolver::Addresses>> resolve(
    boost::asio::io_context& io, Resolver& resolver, const std::string& name) {
    std::optional<Allowed<Resolver::Addresses>> answer;
    io.restart();  // it may have run out of work before
    boost::asio::co_spawn(
        io,
        [&]() -> boost::asio::awaitable<void> {
            answer = co_await resolver.resolve(name, std::chrono::seconds(20));
        },
        boost::asio::detached);
    while (!answer && io.run_one_for(std::chrono::seconds(20)) > 0) {
    }
    return answer;
}

}  // namespace

TEST_CASE("a fixed name has its address whatever the host's resolver says", "[egress][resolver]") {
    boost::asio::io_context io;
    SystemResolver resolver(io, {{"localhost", address("192.0.2.7")}});
    const auto answer = resolve(io, resolver, "localhost");
    REQUIRE(answer.has_value());
    REQUIRE(answer->has_value());
    CHECK(answer->value() == Resolver::Addresses{address("192.0.2.7")});
}

TEST_CASE("the host's resolver is asked for other names", "[egress][resolver]") {
    boost::asio::io_context io;
    SystemResolver resolver(io, {});
    const auto answer = resolve(io, resolver, "localhost");
    REQUIRE(answer.has_value());
    REQUIRE(answer->has_value());
    CHECK(std::count(answer->value().begin(), answer->value().end(), address("127.0.0.1")) > 0);
}

TEST_CASE(
    "kEgressLookupsMax names are looked up at a time, one more is refused", "[egress][resolver]") {
    boost::asio::io_context io;
    constexpr std::size_t kMost = 2;
    CHECK(limits::kEgressLookupsMax > kMost);
    SystemResolver resolver(io, {}, kMost);
    std::vector<Reason> reasons;
    std::size_t answers = 0;
    for (std::size_t i = 0; i < kMost + 1; ++i) {
        boost::asio::co_spawn(
            io,
            [&]() -> boost::asio::awaitable<void> {
                const auto answer =
                    co_await resolver.resolve("localhost", std::chrono::seconds(20));
                ++answers;
                if (answer.has_error()) {
                    reasons.push_back(answer.error().reason);
                }
            },
            boost::asio::detached);
    }
    while (answers < kMost + 1 && io.run_one_for(std::chrono::seconds(20)) > 0) {
    }
    CHECK(answers == kMost + 1);
    CHECK(reasons == std::vector<Reason>{Reason::kResolverBusy});
    // Their places are free again.
    const auto again = resolve(io, resolver, "localhost");
    REQUIRE(again.has_value());
    CHECK(again->has_value());
}
