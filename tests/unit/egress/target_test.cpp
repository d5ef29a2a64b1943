// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/target.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace cellkeep;
using namespace cellkeep::egress;

TEST_CASE("a host has one spelling", "[egress][target]") {
    const auto [text, host, address] = GENERATE(table<std::string, std::string, bool>({
        {"example.org", "example.org", false},
        {"EXAMPLE.Org", "example.org", false},
        {"xn--bcher-kva.example", "xn--bcher-kva.example", false},
        {"localhost", "localhost", false},
        {"1a.example", "1a.example", false},
        {"a-b.example", "a-b.example", false},
        {"93.184.216.34", "93.184.216.34", true},
        {"0.0.0.0", "0.0.0.0", true},
        {"[2606:2800:0220:0001:0248:1893:25C8:1946]", "2606:2800:220:1:248:1893:25c8:1946", true},
    }));
    const auto parsed = parse_host(text);
    REQUIRE(parsed.has_value());
    CHECK(parsed.value().text == host);
    CHECK(parsed.value().address == address);
}

TEST_CASE("a host in any other spelling is refused", "[egress][target]") {
    const std::string text = GENERATE(
        std::string(""),
        // IPv4 as some libraries read it
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0X7F.0.0.1",
        "017700000001",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "127.0.0.01",
        "127.0.0.256",
        "127.0.0.1.1",
        "1.2.3.4.5.6",
        "0",
        "0x",
        "example.0x7f",
        "example.123",
        "1.2.3.+4",
        // IPv6 that is IPv4
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::169.254.169.254]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:0:0:0:0:80ff:fffe]",
        "[fe80::5efe:7f00:1]",
        "[2606:2800:220:1:0:5efe:a00:1]",
        // zones, brackets
        "[fe80::1%eth0]",
        "[fe80::1%25eth0]",
        "[::1",
        "::1",
        "[]",
        "[:::1]",
        "[1.2.3.4]",
        "[example.org]",
        "[::1]x",
        "x[::1]",
        // dots
        "example.org.",
        "example.org..",
        ".example.org",
        "example..org",
        ".",
        "127.0.0.1.",
        // what is no part of a host
        "user@example.org",
        "user:pass@example.org",
        "example.org@127.0.0.1",
        "example.org/",
        "example.org\\evil",
        "example.org#",
        "example.org?",
        "exa mple.org",
        " example.org",
        "example.org ",
        "example.org\t",
        "example.org\r\n",
        "exa_mple.org",
        "*.example.org",
        "example.org%2e",
        "%65xample.org",
        "-example.org",
        "example-.org",
        "example.-org",
        "http://example.org",
        "b\xC3\xBC"
        "cher.example",
        "\xEF\xBC\x91.example",
        "example\xE3\x80\x82org",
        "ex\x7F"
        "ample.org");
    CAPTURE(text);
    CHECK(parse_host(text).has_error());
}

TEST_CASE("a host with NUL in it is refused", "[egress][target]") {
    CHECK(parse_host(std::string("example.org\0.evil", 17)).has_error());
    CHECK(parse_host(std::string("\0", 1)).has_error());
}

TEST_CASE("a host may be kEgressHostBytesMax long and its labels 63", "[egress][target]") {
    const std::string label(63, 'a');
    const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'a');
    REQUIRE(longest.size() == limits::kEgressHostBytesMax);
    CHECK(parse_host(longest).has_value());
    CHECK(parse_host(longest + "a").has_error());
    CHECK(parse_host(std::string(64, 'a') + ".example").has_error());
}

TEST_CASE("a port is a number from 1 to 65535", "[egress][target]") {
    CHECK(parse_port("1").value() == 1);
    CHECK(parse_port("65535").value() == 65535);
    for (const char* wrong :
         {"",
          "0",
          "65536",
          "080",
          "+80",
          "-1",
          "80 ",
          " 80",
          "8o",
          "0x50",
          "443,80",
          "99999999999999999999"}) {
        CAPTURE(wrong);
        CHECK(parse_port(wrong).has_error());
    }
}

TEST_CASE("an authority is a host and a port", "[egress][target]") {
    CHECK(to_string(parse_authority("Example.ORG:443", 0).value()) == "example.org:443");
    CHECK(to_string(parse_authority("example.org", 80).value()) == "example.org:80");
    CHECK(to_string(parse_authority("[2606::1]:8443", 0).value()) == "[2606::1]:8443");
    CHECK(to_string(parse_authority("[2606::1]", 443).value()) == "[2606::1]:443");
    for (const char* wrong :
         {"example.org",
          ":443",
          "example.org:",
          "example.org:443:443",
          "user@example.org:443",
          "example.org:443@127.0.0.1:80",
          "a:b@example.org:443",
          "2606::1:443",
          "[2606::1]443",
          "[::1%lo]:443",
          "example.org.:443",
          "127.1:443",
          "0x7f.0.0.1:443",
          "example.org:0",
          "example.org: 443"}) {
        CAPTURE(wrong);
        CHECK(parse_authority(wrong, 0).has_error());
    }
}

TEST_CASE("the Host header leaves out the usual port", "[egress][target]") {
    const Authority authority{{"example.org", false}, 443};
    CHECK(host_header(authority, 443) == "example.org");
    CHECK(host_header(authority, 80) == "example.org:443");
}

TEST_CASE("an absolute target is an http URL", "[egress][target]") {
    const auto [text, authority, origin] = GENERATE(table<std::string, std::string, std::string>({
        {"http://example.org/a/b?c=d", "example.org:80", "/a/b?c=d"},
        {"HTTP://EXAMPLE.org", "example.org:80", "/"},
        {"http://example.org?q", "example.org:80", "/?q"},
        {"http://example.org:8080/", "example.org:8080", "/"},
    }));
    const auto target = parse_absolute_target(text);
    REQUIRE(target.has_value());
    CHECK(to_string(target.value().authority) == authority);
    CHECK(target.value().origin == origin);
}

TEST_CASE("other absolute targets are refused", "[egress][target]") {
    for (const char* wrong :
         {"https://example.org/",
          "ftp://example.org/",
          "file:///etc/passwd",
          "/path",
          "example.org:80",
          "http:/example.org/",
          "http:///path",
          "http://",
          "http://user@example.org/",
          "http://user:pass@example.org/",
          "http://example.org#fragment",
          "http://example.org/a#b",
          "http://example.org\\@evil.example/",
          "http://example.org:80\\evil/",
          "http://example.org/a b",
          "http://example.org/\\evil",
          "http://2130706433/",
          "http://0x7f.1/",
          "http://[::ffff:10.0.0.1]/",
          "http://example.org./",
          "http://example.org:80:80/",
          "http://*/",
          "*"}) {
        CAPTURE(wrong);
        CHECK(parse_absolute_target(wrong).has_error());
    }
}
