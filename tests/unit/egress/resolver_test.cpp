// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/dial/resolver.hpp"

#include "kernel-manager/egress/limits.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <catch2/catch.hpp>

#include <netinet/in.h>
#include <resolv.h>

#include <future>
#include <optional>
#include <thread>

using namespace cellkeep;
using namespace cellkeep::egress;
using boost::asio::ip::make_address;

namespace {

/// Looks up everything at once but "slow", which waits for the gate.
SystemResolver::LookUp wait_at(const std::shared_future<void>& gate) {
    return [gate](const std::string& name) {
        if (name == "slow") {
            gate.wait();
        }
        return Resolver::Addresses{make_address("192.0.2.1")};
    };
}

/// RES_DNSRCH and RES_DEFNAMES of a thread that looks this name up.
unsigned long search_options(const std::string& name) {
    unsigned long options = 0;
    std::thread([&] {
        REQUIRE(::res_init() == 0);
        set_up_lookup(name);
        options = _res.options & static_cast<unsigned long>(RES_DNSRCH | RES_DEFNAMES);
    }).join();
    return options;
}

/// Runs the loop until the answer is there.
std::optional<Allowed<Resolver::Addresses>> resolve(
    boost::asio::io_context& io,
    Resolver& resolver,
    const std::string& name,
    std::shared_ptr<LookupAccount> account = std::make_shared<LookupAccount>(kLookupsPerSessionMax),
    std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    std::optional<Allowed<Resolver::Addresses>> answer;
    io.restart();  // it may have run out of work before
    boost::asio::co_spawn(
        io,
        [&]() -> boost::asio::awaitable<void> {
            answer = co_await resolver.resolve(name, patience, account);
        },
        boost::asio::detached);
    while (!answer && io.run_one_for(std::chrono::seconds(20)) > 0) {
    }
    return answer;
}

}  // namespace

TEST_CASE("a fixed name has its address whatever the host's resolver says", "[egress][resolver]") {
    boost::asio::io_context io;
    SystemResolver resolver(io, {{"localhost", make_address("192.0.2.7")}});
    const auto answer = resolve(io, resolver, "localhost");
    REQUIRE(answer.has_value());
    REQUIRE(answer->has_value());
    CHECK(answer->value() == Resolver::Addresses{make_address("192.0.2.7")});
}

TEST_CASE("the host's resolver is asked for other names", "[egress][resolver]") {
    boost::asio::io_context io;
    SystemResolver resolver(io, {});
    const auto answer = resolve(io, resolver, "localhost");
    REQUIRE(answer.has_value());
    REQUIRE(answer->has_value());
    CHECK(
        std::count(answer->value().begin(), answer->value().end(), make_address("127.0.0.1")) > 0);
}

TEST_CASE(
    "kEgressLookupsMax names are looked up at a time, one more is refused", "[egress][resolver]") {
    boost::asio::io_context io;
    constexpr std::size_t kLookups = 2;
    CHECK(limits::kEgressLookupsMax > kLookups);
    SystemResolver resolver(io, {}, kLookups);
    std::vector<Reason> reasons;
    std::size_t answers = 0;
    for (std::size_t i = 0; i < kLookups + 1; ++i) {
        boost::asio::co_spawn(
            io,
            [&]() -> boost::asio::awaitable<void> {
                auto account = std::make_shared<LookupAccount>(kLookupsPerSessionMax);
                const auto answer = co_await resolver.resolve(
                    "localhost", std::chrono::seconds(20), std::move(account));
                ++answers;
                if (answer.has_error()) {
                    reasons.push_back(answer.error().reason);
                }
            },
            boost::asio::detached);
    }
    while (answers < kLookups + 1 && io.run_one_for(std::chrono::seconds(20)) > 0) {
    }
    CHECK(answers == kLookups + 1);
    CHECK(reasons == std::vector<Reason>{Reason::kResolverBusy});
    // The places of these names are free again.
    const auto again = resolve(io, resolver, "localhost");
    REQUIRE(again.has_value());
    CHECK(again->has_value());
}

TEST_CASE(
    "of kLookupsPerSessionMax lookups none is free before the C library has given up",
    "[egress][resolver]") {
    const ProxyLimits limits;
    CHECK(limits.lookups_max == kLookupsPerSessionMax);
    CHECK(limits.lookups_max < limits::kEgressLookupsMax);
    std::promise<void> gate;
    boost::asio::io_context io;
    SystemResolver resolver(io, {}, 16, wait_at(gate.get_future().share()));
    const auto account = std::make_shared<LookupAccount>(2);
    const std::chrono::milliseconds little(20);
    for (int i = 0; i < 2; ++i) {
        const auto answer = resolve(io, resolver, "slow", account, little);
        REQUIRE(answer.has_value());
        CHECK(answer->error().reason == Reason::kResolveTimeout);
    }
    const auto refused = resolve(io, resolver, "quick", account, little);
    REQUIRE(refused.has_value());
    CHECK(refused->error().reason == Reason::kResolverBusy);
    // Another session's names do not wait for them.
    const auto other = resolve(io, resolver, "quick");
    REQUIRE(other.has_value());
    CHECK(other->has_value());
    gate.set_value();
    const auto work =
        boost::asio::make_work_guard(io);  // the io_context does not know of the threads
    io.restart();
    while (account->running > 0 && io.run_one_for(std::chrono::seconds(20)) > 0) {
    }
    CHECK(account->running == 0);
    CHECK(resolve(io, resolver, "quick", account)->has_value());
}

TEST_CASE("a name waits for a place among its session's", "[egress][resolver]") {
    std::promise<void> gate;
    boost::asio::io_context io;
    SystemResolver resolver(io, {}, 16, wait_at(gate.get_future().share()));
    const auto account = std::make_shared<LookupAccount>(1);
    std::size_t answers = 0;
    for (const char* name : {"slow", "quick", "other"}) {
        boost::asio::co_spawn(
            io,
            [&, name]() -> boost::asio::awaitable<void> {
                auto shared = account;
                const auto answer =
                    co_await resolver.resolve(name, std::chrono::seconds(20), std::move(shared));
                CHECK(answer.has_value());
                ++answers;
            },
            boost::asio::detached);
    }
    (void)io.poll();
    CHECK(account->running == 1);
    CHECK(answers == 0);
    gate.set_value();
    while (answers < 3 && io.run_one_for(std::chrono::seconds(20)) > 0) {
    }
    CHECK(answers == 3);
}

TEST_CASE("stopping does not wait for a name server", "[egress][resolver]") {
    std::promise<void> gate;
    {
        boost::asio::io_context io;
        SystemResolver resolver(io, {}, 1, wait_at(gate.get_future().share()));
        const auto answer = resolve(
            io,
            resolver,
            "slow",
            std::make_shared<LookupAccount>(1),
            std::chrono::milliseconds(20));
        REQUIRE(answer.has_value());
        CHECK(answer->error().reason == Reason::kResolveTimeout);
        resolver.stop();
    }
    gate.set_value();  // its thread finds that the caller is gone
}

TEST_CASE("only names of one label use the search list", "[egress][resolver]") {
    CHECK(search_options("index.example") == 0);
    CHECK(search_options("index") != 0);
}
