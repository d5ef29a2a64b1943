// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/inherited_sockets.hpp"

#include "kernel-manager/cli/serve/listening.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::cli {
namespace {

using Catch::Matchers::Contains;

InheritedSockets::Entry entry_of(const std::string& address, bool of_manager = false) {
    InheritedSockets::Entry entry;
    entry.address = address;
    entry.of_manager = of_manager;
    entry.socket.fd.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return entry;
}

/// What the manager says, for the time of a test.
class Variables {
 public:
    Variables(const std::string& pid, const std::string& count) {
        (void)::setenv("LISTEN_PID", pid.c_str(), 1);
        (void)::setenv("LISTEN_FDS", count.c_str(), 1);
        (void)::setenv("LISTEN_FDNAMES", "x", 1);
    }
    Variables(const Variables&) = delete;
    Variables& operator=(const Variables&) = delete;
    ~Variables() {
        for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) {
            (void)::unsetenv(name);
        }
    }
};

TEST_CASE("a socket goes to the listener of its address, once", "[cli][upgrade]") {
    InheritedSockets sockets;
    REQUIRE(sockets.add(entry_of("127.0.0.1:1")).has_value());
    REQUIRE(sockets.add(entry_of("127.0.0.1:2", true)).has_value());
    CHECK(sockets.addresses_of_manager().size() == 1);
    CHECK(sockets.addresses_of_manager()[0].port == 2);
    CHECK_FALSE(sockets.take("127.0.0.1:3").socket.fd);
    auto taken = sockets.take("127.0.0.1:2");
    CHECK(taken.socket.fd);
    CHECK(taken.of_manager);
    CHECK_FALSE(sockets.take("127.0.0.1:2").socket.fd);
    CHECK(sockets.entries().size() == 1);
}

TEST_CASE("two sockets of one address, or too many, are refused", "[cli][upgrade]") {
    InheritedSockets sockets;
    for (std::size_t at = 0; at < kInheritedSocketsMax; ++at) {
        REQUIRE(sockets.add(entry_of("127.0.0.1:" + std::to_string(at))).has_value());
    }
    CHECK(sockets.add(entry_of("127.0.0.1:99")).error().code() == ErrorCode::kLimitExceeded);
    (void)sockets.take("127.0.0.1:0");
    CHECK(sockets.add(entry_of("127.0.0.1:1")).error().code() == ErrorCode::kConflict);
    CHECK(sockets.add(entry_of("127.0.0.1:0")).has_value());
}

TEST_CASE("without a service manager there are no sockets", "[cli][upgrade]") {
    SECTION("no variables") {
        CHECK(take_sockets_of_manager().value().entries().empty());
    }
    SECTION("of another process") {
        const Variables said("1", "1");
        CHECK(take_sockets_of_manager().value().entries().empty());
        CHECK(std::getenv("LISTEN_FDS") == nullptr);
        CHECK(std::getenv("LISTEN_PID") == nullptr);
        CHECK(std::getenv("LISTEN_FDNAMES") == nullptr);
    }
    SECTION("none of them") {
        const Variables said(std::to_string(::getpid()), "0");
        CHECK(take_sockets_of_manager().value().entries().empty());
    }
}

TEST_CASE("what the manager says must be a number of sockets", "[cli][upgrade]") {
    const std::string count = GENERATE(as<std::string>(), "", "x", "-1", "17", "1 ", "0x1");
    CAPTURE(count);
    const Variables said(std::to_string(::getpid()), count);
    const auto taken = take_sockets_of_manager();
    REQUIRE(taken.has_error());
    CHECK(taken.error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("addresses of the manager's sockets are planned", "[cli][upgrade]") {
    const std::vector<http::ListenAddress> passed = {
        http::parse_listen_address("127.0.0.1:81").value(),
        http::parse_listen_address("unix:/run/x").value()};
    ServeOptions options;
    SECTION("if the options name none") {
        const auto plan = plan_listening(options, passed);
        REQUIRE(plan.has_value());
        CHECK(plan.value().addresses.size() == 2);
        CHECK(plan.value().addresses_given);
    }
    SECTION("one that others can reach counts as such") {
        const auto plan =
            plan_listening(options, {http::parse_listen_address("0.0.0.0:81").value()});
        CHECK_FALSE(plan.value().loopback());
    }
    SECTION("beside others that the options name") {
        options.listen = std::vector<std::string>{"unix:/run/x", "127.0.0.1:81", "127.0.0.1:82"};
        CHECK(plan_listening(options, passed).value().addresses.size() == 3);
    }
    SECTION("not if the options name others alone") {
        options.listen = std::vector<std::string>{"127.0.0.1:81"};
        const auto plan = plan_listening(options, passed);
        REQUIRE(plan.has_error());
        CHECK_THAT(plan.error().message(), Contains("unix:/run/x"));
    }
}

}  // namespace
}  // namespace cellkeep::cli
