// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/tls/client_hello.hpp"

#include "protocol/limits.hpp"
#include "tests/unit/egress/client_hello_bytes.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace cellkeep;
using namespace cellkeep::egress;

namespace {

constexpr std::size_t kMost = limits::kEgressClientHelloBytesMax;

Result<std::optional<ClientHello>> read(const std::string& bytes) {
    return read_client_hello(bytes, kMost);
}

const Authority kHelloTarget{{"example.org", false}, 443};

}  // namespace

TEST_CASE("the server name is read from a ClientHello", "[egress][hello]") {
    const std::string bytes = in_records(make_hello({{10, "xx"}, server_name("example.org")}));
    const auto hello = read(bytes);
    REQUIRE(hello.has_value());
    REQUIRE(hello.value().has_value());
    CHECK(hello.value()->server_name == "example.org");
    CHECK_FALSE(hello.value()->encrypted);
}

TEST_CASE("a ClientHello may come in any pieces", "[egress][hello]") {
    const std::string handshake = make_hello({server_name("example.org")});
    const std::size_t piece = GENERATE(std::size_t{1}, 3, 5, 50, 1000);
    const std::string bytes = in_records(handshake, piece);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        const auto part = read(bytes.substr(0, size));
        REQUIRE(part.has_value());
        REQUIRE_FALSE(part.value().has_value());
    }
    const auto whole = read(bytes);
    REQUIRE(whole.has_value());
    REQUIRE(whole.value().has_value());
    CHECK(whole.value()->server_name == "example.org");
}

TEST_CASE("a ClientHello may be kEgressClientHelloBytesMax long", "[egress][hello]") {
    const std::size_t rest = make_hello({server_name("example.org"), {21, ""}}).size();
    const std::string longest =
        make_hello({server_name("example.org"), {21, std::string(kMost - rest, '\0')}});
    REQUIRE(longest.size() == kMost);
    CHECK(read(in_records(longest)).value().has_value());
    const std::string longer =
        make_hello({server_name("example.org"), {21, std::string(kMost - rest + 1, '\0')}});
    const auto refused = read(in_records(longer));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    // The length in its first bytes is enough to refuse it.
    CHECK(read(in_records(longer).substr(0, 16)).has_error());
}

TEST_CASE("what is no ClientHello is refused at once", "[egress][hello]") {
    const std::string good = make_hello({server_name("example.org")});
    std::string version_2 = good;
    version_2[4] = '\x02';
    std::string other_message = good;
    other_message[0] = '\x02';
    std::string trailing = good + "x";
    std::string cut = good;
    cut[3] = static_cast<char>(cut[3] - 1);
    const std::vector<std::string> wrong = {
        "GET / HTTP/1.1\r\n",
        "SSH-2.0-x\r\n",
        std::string("\x16\x02\x00\x00\x05hello", 10),
        std::string("\x16\x02", 2),
        std::string("\x17\x03\x03\x00\x01x", 6),
        std::string("\x80\x2e\x01\x03\x01", 5),
        std::string("\x16\x03\x01\x00\x00", 5),
        std::string("\x16\x03\x01\x40\x01", 5),
        in_records(version_2),
        in_records(other_message),
        in_records(trailing),
        in_records(good) + in_records("x"),
        in_records(cut),
        in_records(good.substr(0, 20)) + std::string("\x15\x03\x01\x00\x02\x01\x00", 7),
        // a malformed server name extension
        in_records(make_hello({{0, ""}})),
        in_records(make_hello({{0, std::string("\x00\x00", 2)}})),
        in_records(make_hello({{0, server_name("a").bytes + "x"}})),
        in_records(make_hello({{0, with_length("\x01" + with_length("example.org", 2), 2)}})),
        in_records(make_hello({{0, with_length(std::string(1, '\0') + with_length("", 2), 2)}})),
        in_records(make_hello(
            {{0,
              with_length(
                  std::string(1, '\0') + with_length("a.example", 2) + std::string(1, '\0') +
                      with_length("b.example", 2),
                  2)}})),
        // extensions twice
        in_records(make_hello({server_name("a.example"), server_name("b.example")})),
        in_records(make_hello({{10, ""}, {10, ""}})),
    };
    for (const std::string& bytes : wrong) {
        CAPTURE(Catch::Detail::stringify(bytes));
        const auto refused = read(bytes);
        CHECK(refused.has_error());
    }
}

TEST_CASE("a ClientHello without extensions has no name", "[egress][hello]") {
    std::string body("\x03\x01", 2);
    body += std::string(32, 'r') + with_length("", 1) + with_length("\x13\x01", 2) +
            with_length(std::string(1, '\0'), 1);
    const auto hello = read(in_records(std::string(1, '\x01') + with_length(body, 3)));
    REQUIRE(hello.has_value());
    REQUIRE(hello.value().has_value());
    CHECK(hello.value()->server_name.empty());
}

TEST_CASE("an encrypted ClientHello is seen", "[egress][hello]") {
    const auto type = GENERATE(std::uint16_t{0xFE0D}, std::uint16_t{0xFFCE});
    const auto hello = read(in_records(make_hello({server_name("example.org"), {type, "x"}})));
    REQUIRE(hello.value().has_value());
    CHECK(hello.value()->encrypted);
    CHECK(
        check_client_hello(*hello.value(), kHelloTarget).error().reason ==
        Reason::kEncryptedClientHello);
}

TEST_CASE("a tunnel carries its target's name only", "[egress][hello]") {
    CHECK(check_client_hello({"example.org", false}, kHelloTarget).has_value());
    CHECK(check_client_hello({"EXAMPLE.org", false}, kHelloTarget).has_value());
    CHECK(check_client_hello({"", false}, kHelloTarget).error().reason == Reason::kNoServerName);
    for (const char* other :
         {"example.com",
          "a.example.org",
          "example.org.",
          "example.org:443",
          "example.org@evil.example",
          "127.0.0.1",
          " example.org"}) {
        CAPTURE(other);
        CHECK(
            check_client_hello({other, false}, kHelloTarget).error().reason ==
            Reason::kServerNameMismatch);
    }
    CHECK(check_client_hello({std::string("example.org\0x", 13), false}, kHelloTarget).has_error());
}

TEST_CASE("a tunnel to an address carries no name", "[egress][hello]") {
    const Authority address{{"93.184.216.34", true}, 443};
    CHECK(check_client_hello({"", false}, address).has_value());
    CHECK(check_client_hello({"93.184.216.34", false}, address).has_value());
    CHECK(check_client_hello({"example.org", false}, address).has_error());
    CHECK(check_client_hello({"93.184.216.35", false}, address).has_error());
}
