// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/dial/address.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace cellkeep;
using namespace cellkeep::egress;
using boost::asio::ip::make_address;

TEST_CASE("addresses of the special-purpose registries are not public", "[egress][address]") {
    const auto [text, kind] = GENERATE(table<std::string, AddressKind>({
        {"0.0.0.0", AddressKind::kUnspecified},
        {"0.255.255.255", AddressKind::kUnspecified},
        {"10.0.0.1", AddressKind::kPrivate},
        {"10.255.255.255", AddressKind::kPrivate},
        {"100.64.0.1", AddressKind::kPrivate},
        {"100.127.255.255", AddressKind::kPrivate},
        {"127.0.0.1", AddressKind::kLoopback},
        {"127.255.255.254", AddressKind::kLoopback},
        {"169.254.0.1", AddressKind::kLinkLocal},
        {"169.254.169.254", AddressKind::kLinkLocal},
        {"172.16.0.1", AddressKind::kPrivate},
        {"172.31.255.255", AddressKind::kPrivate},
        {"192.0.0.1", AddressKind::kReserved},
        {"192.0.2.1", AddressKind::kReserved},
        {"192.31.196.1", AddressKind::kReserved},
        {"192.52.193.1", AddressKind::kReserved},
        {"192.88.99.1", AddressKind::kReserved},
        {"192.168.255.255", AddressKind::kPrivate},
        {"192.175.48.1", AddressKind::kReserved},
        {"198.18.0.1", AddressKind::kReserved},
        {"198.19.255.255", AddressKind::kReserved},
        {"198.51.100.1", AddressKind::kReserved},
        {"203.0.113.1", AddressKind::kReserved},
        {"224.0.0.1", AddressKind::kMulticast},
        {"239.255.255.255", AddressKind::kMulticast},
        {"240.0.0.1", AddressKind::kReserved},
        {"255.255.255.255", AddressKind::kReserved},
        {"::", AddressKind::kUnspecified},
        {"::1", AddressKind::kLoopback},
        {"::2", AddressKind::kEmbedding},
        {"::127.0.0.1", AddressKind::kEmbedding},
        {"::ffff:127.0.0.1", AddressKind::kEmbedding},
        {"::ffff:93.184.216.34", AddressKind::kEmbedding},
        {"::ffff:0:7f00:1", AddressKind::kEmbedding},
        {"64:ff9b::a9fe:a9fe", AddressKind::kEmbedding},
        {"64:ff9b:1::1", AddressKind::kEmbedding},
        {"2002:7f00:1::1", AddressKind::kEmbedding},
        {"2001::1", AddressKind::kEmbedding},
        {"2606:4700::5efe:a00:1", AddressKind::kEmbedding},
        {"fe80::200:5efe:a00:1", AddressKind::kEmbedding},
        {"100::1", AddressKind::kReserved},
        {"2001:2::1", AddressKind::kReserved},
        {"2001:10::1", AddressKind::kReserved},
        {"2001:20::1", AddressKind::kReserved},
        {"2001:db8::1", AddressKind::kReserved},
        {"3fff::1", AddressKind::kReserved},
        {"5f00::1", AddressKind::kReserved},
        {"4000::1", AddressKind::kReserved},
        {"fc00::1", AddressKind::kPrivate},
        {"fd00:ec2::254", AddressKind::kPrivate},
        {"fdff::1", AddressKind::kPrivate},
        {"fe80::1", AddressKind::kLinkLocal},
        {"febf::1", AddressKind::kLinkLocal},
        {"fec0::1", AddressKind::kPrivate},
        {"ff02::1", AddressKind::kMulticast},
    }));
    CAPTURE(text);
    CHECK(to_string(classify(make_address(text))) == to_string(kind));
    CHECK(AddressRules().judge(make_address(text)) != AddressKind::kPublic);
}

TEST_CASE("the neighbours of special ranges are public", "[egress][address]") {
    for (const char* text :
         {"1.0.0.0",         "9.255.255.255",   "11.0.0.0",       "100.63.255.255",
          "100.128.0.0",     "126.255.255.255", "128.0.0.0",      "169.253.255.255",
          "169.255.0.0",     "172.15.255.255",  "172.32.0.0",     "192.0.1.0",
          "192.167.255.255", "192.169.0.0",     "198.17.255.255", "198.20.0.0",
          "223.255.255.255", "2606:4700::1111", "2a00:1450::1",   "2003::1"}) {
        CAPTURE(text);
        CHECK(classify(make_address(text)) == AddressKind::kPublic);
    }
}

TEST_CASE("an address with a zone is link-local", "[egress][address]") {
    CHECK(classify(make_address("2606:4700::1%1")) == AddressKind::kLinkLocal);
}

TEST_CASE("this host's own public addresses are refused", "[egress][address]") {
    const AddressRules rules({}, {make_address("93.184.216.34"), make_address("2606::1")});
    CHECK(rules.judge(make_address("93.184.216.34")) == AddressKind::kOwn);
    CHECK(rules.judge(make_address("2606::1")) == AddressKind::kOwn);
    CHECK(rules.judge(make_address("93.184.216.35")) == AddressKind::kPublic);
}

TEST_CASE("what the operator permits may be dialled, and nothing beside it", "[egress][address]") {
    const AddressRules rules(
        {parse_address_range("127.0.0.1").value(),
         parse_address_range("10.1.0.0/16").value(),
         parse_address_range("fd00:1::/32").value()},
        {make_address("10.1.0.7")});
    for (const char* good : {"127.0.0.1", "10.1.0.0", "10.1.255.255", "10.1.0.7", "fd00:1::9"}) {
        CAPTURE(good);
        CHECK(rules.judge(make_address(good)) == AddressKind::kPublic);
    }
    for (const char* bad :
         {"127.0.0.2",
          "10.0.255.255",
          "10.2.0.0",
          "fd00:2::1",
          "::ffff:127.0.0.1",
          "::ffff:10.1.0.1",
          "64:ff9b::7f00:1",
          "::1"}) {
        CAPTURE(bad);
        CHECK(rules.judge(make_address(bad)) != AddressKind::kPublic);
    }
}

TEST_CASE("a range is an address or a network", "[egress][address]") {
    CHECK(parse_address_range("10.0.0.0/8").value().prefix == 8);
    CHECK(parse_address_range("::1").value().prefix == 128);
    for (const char* wrong :
         {"",
          "10",
          "10.0.0.0/0",
          "10.0.0.0/33",
          "10.0.0.0/",
          "10.0.0.0/8/8",
          "10.0.0.0/+8",
          "010.0.0.1",
          "0x7f.0.0.1",
          "localhost",
          "::1/129",
          "fe80::1%lo",
          "/8",
          " 10.0.0.1"}) {
        CAPTURE(wrong);
        CHECK(parse_address_range(wrong).has_error());
    }
}

TEST_CASE("addresses are read in one spelling", "[egress][address]") {
    CHECK(read_ipv4("1.2.3.4").has_value());
    for (const char* wrong :
         {"",
          "1",
          "1.2.3",
          "1.2.3.4.",
          ".1.2.3.4",
          "1.2.3.4.5",
          "01.2.3.4",
          "1.2.3.04",
          "1.2.3.256",
          "1.2.3.-4",
          "1..3.4",
          "a.b.c.d",
          "1.2.3.4 ",
          "0x1.2.3.4"}) {
        CAPTURE(wrong);
        CHECK_FALSE(read_ipv4(wrong).has_value());
    }
    CHECK(read_ipv6("::1").has_value());
    for (const char* wrong : {"", "1.2.3.4", ":::", "::1%1", "1:2:3:4:5:6:7", "g::", "[::1]"}) {
        CAPTURE(wrong);
        CHECK_FALSE(read_ipv6(wrong).has_value());
    }
    CHECK_FALSE(read_ipv6(std::string("::1\0", 4)).has_value());
}

TEST_CASE("an embedded IPv4 address is found", "[egress][address]") {
    const auto [text, inside] = GENERATE(table<std::string, std::string>({
        {"::ffff:1.2.3.4", "1.2.3.4"},
        {"::1.2.3.4", "1.2.3.4"},
        {"64:ff9b::1.2.3.4", "1.2.3.4"},
        {"2002:102:304::", "1.2.3.4"},
        {"2001::fefd:fcfb", "1.2.3.4"},
        {"2606::5efe:1.2.3.4", "1.2.3.4"},
    }));
    CAPTURE(text);
    const auto found = embedded_ipv4(make_address(text).to_v6());
    REQUIRE(found.has_value());
    CHECK(found->to_string() == inside);
    CHECK_FALSE(embedded_ipv4(make_address("2606::1").to_v6()).has_value());
}

TEST_CASE("this host has the loopback address", "[egress][address]") {
    const auto own = own_addresses();
    REQUIRE(own.has_value());
    CHECK(std::count(own.value().begin(), own.value().end(), make_address("127.0.0.1")) == 1);
}
