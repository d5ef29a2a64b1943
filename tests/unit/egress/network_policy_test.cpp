// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/network_policy.hpp"

#include "kernel-manager/egress/egress_service.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace cellkeep;
using namespace cellkeep::egress;

namespace {

AllowedHost ceiling_entry(const std::string& text) {
    return parse_ceiling(text).value();
}

}  // namespace

TEST_CASE("an entry of an allowlist has one spelling", "[egress][policy]") {
    const auto [text, normal] = GENERATE(table<std::string, std::string>({
        {"example.org", "example.org:443"},
        {"Example.ORG:8443", "example.org:8443"},
        {"*.example.org", "*.example.org:443"},
        {"*.Packages.example.org:80", "*.packages.example.org:80"},
        {"192.0.2.1:80", "192.0.2.1:80"},
        {"[2606:0::1]:443", "[2606::1]:443"},
    }));
    const auto parsed = parse_allowed_host(text);
    REQUIRE(parsed.has_value());
    CHECK(to_string(parsed.value()) == normal);
    CHECK(parse_allowed_host(normal).value() == parsed.value());
}

TEST_CASE("other entries of an allowlist are refused", "[egress][policy]") {
    for (const char* wrong :
         {"",
          "*",
          "*:443",
          "*.*",
          "*.org",
          "*.",
          "**.example.org",
          "*example.org",
          "a.*.example.org",
          "*.*.example.org",
          "example.*",
          "*.192.0.2.1",
          "*.[2606::1]",
          "https://example.org",
          "example.org/path",
          "example.org:",
          "example.org:0",
          "example.org:*",
          "user@example.org",
          "example.org.",
          "127.1",
          "0x7f000001:80",
          "[::ffff:10.0.0.1]:80",
          "exam ple.org"}) {
        CAPTURE(wrong);
        CHECK(parse_allowed_host(wrong).has_error());
    }
}

TEST_CASE("an entry covers its host and port only", "[egress][policy]") {
    const AllowedHost exact = ceiling_entry("example.org:443");
    CHECK(covers(exact, "example.org", 443));
    for (const char* other :
         {"", "example.com", "a.example.org", "example.org.", "xexample.org", "org"}) {
        CAPTURE(other);
        CHECK_FALSE(covers(exact, other, 443));
    }
    CHECK_FALSE(covers(exact, "example.org", 80));
}

TEST_CASE("a wildcard covers the names below, not the name", "[egress][policy]") {
    const AllowedHost below = ceiling_entry("*.example.org:443");
    CHECK(covers(below, "a.example.org", 443));
    CHECK(covers(below, "a.b.example.org", 443));
    for (const char* other :
         {"example.org", ".example.org", "aexample.org", "example.org.evil", "a.example.com", ""}) {
        CAPTURE(other);
        CHECK_FALSE(covers(below, other, 443));
    }
    CHECK_FALSE(covers(below, "a.example.org", 80));
}

TEST_CASE("a ceiling covers what is as wide or narrower", "[egress][policy]") {
    CHECK(covers(ceiling_entry("*:443"), ceiling_entry("*.example.org")));
    CHECK(covers(ceiling_entry("*:443"), ceiling_entry("example.org")));
    CHECK(covers(ceiling_entry("*:443"), ceiling_entry("192.0.2.1")));
    CHECK(covers(ceiling_entry("*.example.org"), ceiling_entry("*.example.org")));
    CHECK(covers(ceiling_entry("*.example.org"), ceiling_entry("*.a.example.org")));
    CHECK(covers(ceiling_entry("*.example.org"), ceiling_entry("a.example.org")));
    CHECK(covers(ceiling_entry("example.org"), ceiling_entry("example.org")));
    CHECK_FALSE(covers(ceiling_entry("*:443"), ceiling_entry("*.example.org:80")));
    CHECK_FALSE(covers(ceiling_entry("*:443"), ceiling_entry("example.org:8443")));
    CHECK_FALSE(covers(ceiling_entry("*.example.org"), ceiling_entry("example.org")));
    CHECK_FALSE(covers(ceiling_entry("*.a.example.org"), ceiling_entry("*.example.org")));
    CHECK_FALSE(covers(ceiling_entry("example.org"), ceiling_entry("*.example.org")));
    CHECK_FALSE(covers(ceiling_entry("a.example.org"), ceiling_entry("*.example.org")));
    CHECK_FALSE(covers(ceiling_entry("*.example.org"), ceiling_entry("*.badexample.org")));
}

TEST_CASE("mode none allows nothing, also with entries in the list", "[egress][policy]") {
    NetworkPolicy policy;
    policy.allow = {ceiling_entry("example.org")};
    CHECK_FALSE(allows(policy, "example.org", 443));
    policy.mode = NetworkMode::kAllowlist;
    CHECK(allows(policy, "example.org", 443));
    CHECK_FALSE(allows(policy, "example.com", 443));
    policy.allow.clear();
    CHECK_FALSE(allows(policy, "example.org", 443));
}
