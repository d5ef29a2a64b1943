// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/tls/tls_authority.hpp"

#include <catch2/catch.hpp>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

using namespace cellkeep;
using namespace cellkeep::egress;

namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free_all)>;

Key make_test_key(const char* curve) {
    return {EVP_EC_gen(curve), &EVP_PKEY_free};
}

std::string text_of(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return {data, static_cast<std::size_t>(size)};
}

/// password: null for none.
std::string pem_of(EVP_PKEY* key, const char* password) {
    const Bio bio(BIO_new(BIO_s_mem()), &BIO_free_all);
    const EVP_CIPHER* const cipher = password == nullptr ? nullptr : EVP_aes_128_cbc();
    std::string word = password == nullptr ? "" : password;
    REQUIRE(
        PEM_write_bio_PKCS8PrivateKey(
            bio.get(), key, cipher, word.data(), static_cast<int>(word.size()), nullptr, nullptr) ==
        1);
    return text_of(bio.get());
}

/// A key, and a certificate that it has signed for itself.
TlsAuthority::Passed self_signed(const char* curve, bool authority, long seconds = 3600) {
    const Key key = make_test_key(curve);
    const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), &X509_free);
    (void)X509_set_version(made.get(), X509_VERSION_3);
    (void)X509_gmtime_adj(X509_getm_notBefore(made.get()), -7200);
    (void)X509_gmtime_adj(X509_getm_notAfter(made.get()), seconds);
    (void)X509_set_pubkey(made.get(), key.get());
    const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> constraint(
        X509V3_EXT_conf_nid(
            nullptr, nullptr, NID_basic_constraints, authority ? "critical,CA:TRUE" : "CA:FALSE"),
        &X509_EXTENSION_free);
    REQUIRE(X509_add_ext(made.get(), constraint.get(), -1) == 1);
    REQUIRE(X509_sign(made.get(), key.get(), EVP_sha256()) > 0);
    const Bio bio(BIO_new(BIO_s_mem()), &BIO_free_all);
    REQUIRE(PEM_write_bio_X509(bio.get(), made.get()) == 1);
    return {pem_of(key.get(), nullptr), text_of(bio.get())};
}

}  // namespace

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

TEST_CASE("an authority goes on in another program", "[egress][tls][passing]") {
    const auto before = TlsAuthority::create().value();
    const auto passed = before->pass_on().value();
    CHECK(passed.certificate == before->pem());
    const auto after = TlsAuthority::go_on(passed);
    REQUIRE(after.has_value());
    CHECK(after.value()->pem() == before->pem());
    CHECK(after.value()->pass_on().value().key == passed.key);
    CHECK(after.value()->context_for({"api.example", false}).has_value());
}

TEST_CASE("what is no authority of ours does not go on", "[egress][tls][passing]") {
    const auto one = TlsAuthority::create().value()->pass_on().value();
    const auto other = TlsAuthority::create().value()->pass_on().value();
    TlsAuthority::Passed passed = one;
    SECTION("another one's key") {
        passed.key = other.key;
    }
    SECTION("no key") {
        passed.key.clear();
    }
    SECTION("no certificate") {
        passed.certificate.clear();
    }
    SECTION("a certificate for a key") {
        passed.key = one.certificate;
    }
    SECTION("a key for a certificate") {
        passed.certificate = one.key;
    }
    SECTION("a key that is cut off") {
        passed.key.resize(passed.key.size() / 2);
    }
    SECTION("a certificate with a changed byte") {
        const std::size_t middle = passed.certificate.size() / 2;
        passed.certificate[middle] = passed.certificate[middle] == 'A' ? 'B' : 'A';
    }
    SECTION("a key that is too long") {
        passed.key.insert(0, std::string(9000, ' '));
    }
    SECTION("a key that wants a password") {
        passed.key = pem_of(make_test_key("P-256").get(), "word");
    }
    SECTION("a key on another curve, with a certificate of its own") {
        passed = self_signed("P-384", true);
    }
    SECTION("a key with a certificate that signs nothing") {
        passed = self_signed("P-256", false);
    }
    SECTION("a certificate of another one") {
        passed.certificate = other.certificate;
    }
    SECTION("a certificate that is over") {
        passed = self_signed("P-256", true, -60);
    }
    SECTION("as it is, it goes on") {
        CHECK(TlsAuthority::go_on(passed).has_value());
        CHECK(TlsAuthority::go_on(self_signed("P-256", true)).has_value());
        return;
    }
    const auto refused = TlsAuthority::go_on(passed);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kProtocol);
    CHECK(refused.error().message().find("BEGIN") == std::string::npos);
}
