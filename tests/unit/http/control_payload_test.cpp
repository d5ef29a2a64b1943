// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/websocket/control_payload.hpp"

#include <catch2/catch.hpp>

using namespace cellkeep::http;

TEST_CASE("a reason that fits a close frame stays, a longer one is cut", "[http][websocket]") {
    CHECK(cut_reason("") == "");
    CHECK(cut_reason(std::string(123, 'a')) == std::string(123, 'a'));
    CHECK(cut_reason(std::string(124, 'a')) == std::string(123, 'a'));
}

TEST_CASE("a reason is not cut within a character", "[http][websocket]") {
    const std::string three = "\xe2\x82\xac";  // the euro sign
    CHECK(cut_reason(std::string(122, 'a') + three) == std::string(122, 'a'));
    CHECK(cut_reason(std::string(121, 'a') + three) == std::string(121, 'a'));
    CHECK(cut_reason(std::string(120, 'a') + three + "b") == std::string(120, 'a') + three);
}

TEST_CASE("a close frame's payload fits the longest frame", "[http][websocket]") {
    CHECK(make_close(1012, "again") == std::string("\x03\xf4") + "again");
    CHECK(make_close(1000, "").size() == 2);
    CHECK(make_close(1012, std::string(200, 'a')).size() == 125);
}

TEST_CASE("a proof's number comes back from its pong", "[http][websocket]") {
    for (const std::uint64_t number : {0ULL, 1ULL, 255ULL, 256ULL, ~0ULL}) {
        const std::string ping = make_proof(number);
        REQUIRE(ping.size() == 10);
        CHECK(ping.substr(0, 2) == "\x89\x08");
        CHECK(read_proof(std::string_view(ping).substr(2)) == number);
    }
}

TEST_CASE("a pong of another length proves nothing", "[http][websocket]") {
    CHECK_FALSE(read_proof(""));
    CHECK_FALSE(read_proof("1234567"));
    CHECK_FALSE(read_proof("123456789"));
}
