// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/http/certificate.hpp"

#include <catch2/catch.hpp>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <sys/stat.h>

#include <cstdio>
#include <memory>

namespace cellkeep::http::test {

namespace {

struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using File = std::unique_ptr<std::FILE, Free>;

File open_for(const std::string& path, const char* mode) {
    File file(std::fopen(path.c_str(), mode));
    REQUIRE(file);
    return file;
}

void write_key(const std::string& path, EVP_PKEY* key, const EVP_CIPHER* cipher) {
    static constexpr const char* kPassphrase = "secret";
    const File file = open_for(path, "w");
    const auto* phrase = reinterpret_cast<const unsigned char*>(kPassphrase);
    REQUIRE(
        PEM_write_PrivateKey(
            file.get(),
            key,
            cipher,
            cipher == nullptr ? nullptr : phrase,
            cipher == nullptr ? 0 : 6,
            nullptr,
            nullptr) == 1);
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
}

}  // namespace

CertificateFiles make_certificate(const std::string& directory, const std::string& name) {
    const CertificateFiles files{directory + "/" + name + ".crt", directory + "/" + name + ".key"};
    const Key key(EVP_EC_gen("P-256"));
    REQUIRE(key);
    write_key(files.key, key.get(), nullptr);

    const std::unique_ptr<X509, Free> certificate(X509_new());
    X509* x509 = certificate.get();
    REQUIRE(X509_set_version(x509, 2) == 1);
    REQUIRE(ASN1_INTEGER_set(X509_get_serialNumber(x509), 1) == 1);
    REQUIRE(X509_gmtime_adj(X509_getm_notBefore(x509), -60) != nullptr);
    REQUIRE(X509_gmtime_adj(X509_getm_notAfter(x509), 3600) != nullptr);
    REQUIRE(X509_set_pubkey(x509, key.get()) == 1);
    X509_NAME* subject = X509_get_subject_name(x509);
    const auto* host = reinterpret_cast<const unsigned char*>("localhost");
    REQUIRE(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, host, -1, -1, 0) == 1);
    REQUIRE(X509_set_issuer_name(x509, subject) == 1);
    REQUIRE(X509_sign(x509, key.get(), EVP_sha256()) > 0);
    const File file = open_for(files.certificate, "w");
    REQUIRE(PEM_write_X509(file.get(), x509) == 1);
    return files;
}

std::string encrypt_key(const std::string& key_path) {
    const Key key(PEM_read_PrivateKey(open_for(key_path, "r").get(), nullptr, nullptr, nullptr));
    REQUIRE(key);
    write_key(key_path + ".encrypted", key.get(), EVP_aes_128_cbc());
    return key_path + ".encrypted";
}

}  // namespace cellkeep::http::test
