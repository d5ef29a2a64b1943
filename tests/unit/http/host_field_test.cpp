// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/access/host_field.hpp"

#include <catch2/catch.hpp>

#include <initializer_list>
#include <string>

namespace cellkeep::http {
namespace {

Headers with_hosts(std::initializer_list<const char*> hosts) {
    Headers headers;
    for (const char* host : hosts) {
        headers.add("Host", host);
    }
    return headers;
}

TEST_CASE("the host of a field is what stands before its port", "[http][host_field]") {
    const auto [field, host] = GENERATE(table<std::string, std::string>({
        {"localhost", "localhost"},
        {"localhost:8888", "localhost"},
        {"localhost:", "localhost"},
        {"127.0.0.1:0", "127.0.0.1"},
        {"127.0.0.1:65535", "127.0.0.1"},
        {"[::1]", "[::1]"},
        {"[::1]:8888", "[::1]"},
        {"[::1]:", "[::1]"},
        {"[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]"},
        {"my_service.internal:80", "my_service.internal"},
        {"", ""},
        {":8888", ""},
    }));
    CAPTURE(field);
    REQUIRE(host_of(field).has_value());
    CHECK(*host_of(field) == host);
}

TEST_CASE("a malformed field has no host", "[http][host_field]") {
    const std::string field = GENERATE(
        as<std::string>(),
        "[::1].evil.com",
        "[::1]evil",
        "[::1]:80:evil",
        "[::1]80",
        "[::1",
        "[::1]]",
        "[]",
        "[]:80",
        "[:]",
        "[localhost]",
        "[::1%25lo]",
        "::1",
        "::1]",
        "127.0.0.1:80:evil",
        "127.0.0.1:evil",
        "127.0.0.1:80evil",
        "127.0.0.1: 80",
        "127.0.0.1:+80",
        "127.0.0.1:-1",
        "127.0.0.1:65536",
        "127.0.0.1:99999999999999999999",
        "user@localhost",
        "localhost@evil.com",
        "localhost/evil",
        "localhost, evil.com",
        "localhost,evil.com",
        "localhost evil.com",
        "localhost\tevil.com",
        "localhost?x",
        "localhost#x",
        "localhost\\evil",
        "http://localhost",
        "local\x01host",
        "l\xC3\xB6"
        "calhost");
    CAPTURE(field);
    CHECK_FALSE(host_of(field).has_value());
    CHECK(host_fault(with_hosts({field.c_str()}), "").has_value());
}

TEST_CASE("a request has one Host, and the target's authority is the same", "[http][host_field]") {
    CHECK_FALSE(host_fault(with_hosts({}), "").has_value());
    CHECK_FALSE(host_fault(with_hosts({"localhost:1"}), "").has_value());
    CHECK_FALSE(host_fault(with_hosts({"localhost:1"}), "LOCALHOST:1").has_value());
    CHECK_FALSE(host_fault(with_hosts({"lab.example"}), "lab.example:80").has_value());
    CHECK_FALSE(host_fault(with_hosts({"lab.example:443"}), "lab.example").has_value());

    CHECK(host_fault(with_hosts({"localhost", "localhost"}), "").has_value());
    CHECK(host_fault(with_hosts({"localhost", "evil.com"}), "").has_value());
    CHECK(host_fault(with_hosts({"evil.com", "localhost"}), "").has_value());
    Headers folded = with_hosts({"localhost"});
    folded.add("hOsT", "localhost");
    CHECK(host_fault(folded, "").has_value());

    CHECK(host_fault(with_hosts({"localhost"}), "evil.com").has_value());
    CHECK(host_fault(with_hosts({"localhost:1"}), "localhost:2").has_value());
    CHECK(host_fault(with_hosts({"localhost:1"}), "localhost").has_value());
    CHECK(host_fault(with_hosts({"localhost"}), "localhost.evil.com").has_value());
    CHECK(host_fault(with_hosts({"localhost"}), "localhost:evil").has_value());
    CHECK(host_fault(with_hosts({}), "localhost").has_value());
}

TEST_CASE("a host may name a port of a sandbox", "[http][host_field]") {
    const auto parts = split_sandbox_host("49999-a1B2.lab.example");
    REQUIRE(parts.has_value());
    CHECK(parts->port == 49999);
    CHECK(parts->id == "a1B2");
    CHECK(parts->name == "lab.example");
    CHECK(split_sandbox_host("1-a.b").has_value());
    CHECK(split_sandbox_host("65535-a.b").has_value());
    for (const char* other :
         {"",
          "localhost",
          "lab.example",
          "0-a.b",
          "01-a.b",
          "65536-a.b",
          "-1-a.b",
          "1a-a.b",
          "1-.b",
          "1-a.",
          "1-a",
          "1-a-b.c",
          "1-a_b.c",
          "1.2-a.b",
          "a-1.b"}) {
        CAPTURE(other);
        CHECK_FALSE(split_sandbox_host(other).has_value());
    }
}

}  // namespace
}  // namespace cellkeep::http
