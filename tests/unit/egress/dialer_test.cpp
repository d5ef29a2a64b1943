// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/dial/dialer.hpp"

#include <catch2/catch.hpp>

using namespace cellkeep;
using namespace cellkeep::egress;
using boost::asio::ip::make_address;
using Catch::Matchers::Contains;

namespace {

const Authority kDialledTarget{{"example.org", false}, 443};

}  // namespace

TEST_CASE("only addresses that may be reached are chosen", "[egress][dialer]") {
    const auto chosen = choose_addresses(
        kDialledTarget,
        {make_address("10.0.0.1"),
         make_address("93.184.216.34"),
         make_address("::1"),
         make_address("2606::1")},
        AddressRules(),
        limits::kEgressAddressesMax);
    REQUIRE(chosen.has_value());
    CHECK(
        chosen.value() ==
        std::vector<Address>{make_address("93.184.216.34"), make_address("2606::1")});
}

TEST_CASE("a refusal says what the addresses are, not which", "[egress][dialer]") {
    const auto refused = choose_addresses(
        kDialledTarget,
        {make_address("10.0.0.1"), make_address("169.254.169.254"), make_address("10.0.0.2")},
        AddressRules(),
        limits::kEgressAddressesMax);
    REQUIRE(refused.has_error());
    CHECK(refused.error().reason == Reason::kAddressRefused);
    CHECK_THAT(
        refused.error().detail,
        Contains("link_local, private") && !Contains("10.0.0") && !Contains("169.254"));
}

TEST_CASE("kEgressAddressesMax addresses of one name are tried, not one more", "[egress][dialer]") {
    std::vector<Address> many;
    for (std::size_t i = 0; i < limits::kEgressAddressesMax + 1; ++i) {
        many.push_back(Ipv4(static_cast<std::uint32_t>(0x01000001U + i)));
    }
    const auto chosen =
        choose_addresses(kDialledTarget, many, AddressRules(), limits::kEgressAddressesMax);
    REQUIRE(chosen.has_value());
    CHECK(chosen.value().size() == limits::kEgressAddressesMax);
}
