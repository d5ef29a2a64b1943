// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/tls/tls_authority.hpp"

#include <catch2/catch.hpp>
#include <openssl/ssl.h>

using namespace cellkeep;
using namespace cellkeep::egress;

TEST_CASE("an authority is made anew each time and signs only hosts", "[egress][tls]") {
    const auto one = TlsAuthority::create();
    const auto other = TlsAuthority::create();
    REQUIRE(one.has_value());
    REQUIRE(other.has_value());
    CHECK(one.value()->pem().starts_with("-----BEGIN CERTIFICATE-----"));
    CHECK(one.value()->pem().find("PRIVATE") == std::string::npos);
    CHECK(one.value()->pem() != other.value()->pem());
    CHECK(check_certificates(one.value()->pem()).has_value());
}

TEST_CASE("a host's certificate is kept and used again", "[egress][tls]") {
    const auto authority = TlsAuthority::create().value();
    const auto first = authority->context_for({"api.example", false});
    const auto again = authority->context_for({"api.example", false});
    const auto address = authority->context_for({"192.0.2.1", true});
    REQUIRE(first.has_value());
    REQUIRE(address.has_value());
    CHECK(first.value() == again.value());
    CHECK(first.value() != address.value());
    CHECK(authority->kept() == 2);
}

TEST_CASE("kEgressCertificatesMax certificates are kept, not one more", "[egress][tls]") {
    CHECK(limits::kEgressCertificatesMax > 3);
    const auto authority = TlsAuthority::create(3).value();
    for (int i = 0; i < 3; ++i) {
        REQUIRE(authority->context_for({"h" + std::to_string(i) + ".example", false}).has_value());
    }
    const auto newest = authority->context_for({"h2.example", false});
    CHECK(authority->kept() == 3);
    REQUIRE(authority->context_for({"one.more.example", false}).has_value());
    CHECK(authority->kept() == 3);
    CHECK(authority->context_for({"h2.example", false}).value() == newest.value());
}

TEST_CASE("names of any allowed length get a certificate", "[egress][tls]") {
    const auto authority = TlsAuthority::create().value();
    const std::string label(63, 'a');
    CHECK(authority
              ->context_for({label + "." + label + "." + label + "." + std::string(61, 'b'), false})
              .has_value());
    CHECK(authority->context_for({"2606:4700::1111", true}).has_value());
}

TEST_CASE("what is no certificate is refused", "[egress][tls]") {
    for (const char* wrong :
         {"",
          "text",
          "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
          "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"}) {
        CAPTURE(wrong);
        CHECK(check_certificates(wrong).has_error());
    }
    CHECK(make_client_context("").has_value());
}
