// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/tls/tls_authority.hpp"

#include "protocol/support/syscall.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <chrono>
#include <map>
#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kBundleBytesMax = 8ULL << 20U;
constexpr long kBackdateSeconds = 3600;  // clocks inside may be a little behind
constexpr long kAuthoritySeconds = 10L * 365 * 86'400;
constexpr long kLeafSeconds = 7L * 86'400;
constexpr std::chrono::hours kLeafKept{24};
constexpr std::size_t kSerialBytes = 16;
constexpr int kKeyBits = 256;
constexpr std::size_t kPassedPemBytesMax = 8ULL << 10U;  // of one key, or one certificate
/// TLS 1.2 (TLS 1.3 has only good ones): ephemeral keys and authenticated encryption.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr std::array<unsigned char, 9> kHttp11 = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
    void operator()(BIO* bio) const { BIO_free_all(bio); }
    void operator()(BIGNUM* number) const { BN_free(number); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

Error tls_error(const std::string& what) {
    ERR_clear_error();
    return {ErrorCode::kSystem, what + ": the TLS library refuses"};
}

Result<Owned<EVP_PKEY>> make_key() {
    Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
    if (!key) {
        return tls_error("make a key");
    }
    return key;
}

bool set_serial(X509& certificate) {
    std::array<unsigned char, kSerialBytes> bytes{};
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
        return false;
    }
    bytes[0] = static_cast<unsigned char>(bytes[0] & 0x7FU);  // positive (RFC 5280, 4.1.2.2)
    const Owned<BIGNUM> number(BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr));
    return number &&
           BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr;
}

bool add_extension(X509& certificate, X509& issuer, int nid, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
    const Owned<X509_EXTENSION> extension(
        X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
    return extension && X509_add_ext(&certificate, extension.get(), -1) == 1;
}

bool set_name(X509_NAME* name, const std::string& text) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    return X509_NAME_add_entry_by_NID(
               name, NID_commonName, MBSTRING_ASC, bytes, static_cast<int>(text.size()), -1, 0) ==
           1;
}

/// A certificate without extensions and signature.
Owned<X509> begin_certificate(EVP_PKEY& key, long seconds, const std::string& name) {
    Owned<X509> certificate(X509_new());
    const bool made =
        certificate && X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
        set_serial(*certificate) &&
        X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kBackdateSeconds) != nullptr &&
        X509_gmtime_adj(X509_getm_notAfter(certificate.get()), seconds) != nullptr &&
        X509_set_pubkey(certificate.get(), &key) == 1 &&
        set_name(X509_get_subject_name(certificate.get()), name);
    return made ? std::move(certificate) : nullptr;
}

std::string text_in(BIO& bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(&bio, &data);
    return {data, static_cast<std::size_t>(size)};
}

Result<std::string> to_pem(X509& certificate) {
    const Owned<BIO> bio(BIO_new(BIO_s_mem()));
    if (!bio || PEM_write_bio_X509(bio.get(), &certificate) != 1) {
        return tls_error("write a certificate");
    }
    return text_in(*bio);
}

/// What a certificate authority of ours is: a key on P-256, and a certificate of its own.
bool are_of_ours(EVP_PKEY* key, X509* certificate) {
    return key != nullptr && certificate != nullptr && EVP_PKEY_get_id(key) == EVP_PKEY_EC &&
           EVP_PKEY_get_bits(key) == kKeyBits && X509_check_private_key(certificate, key) == 1 &&
           X509_check_ca(certificate) == 1 && X509_verify(certificate, key) == 1 &&
           X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0;
}

/// Null for anything else than one PEM text of that kind.
template <typename T, typename Read>
Owned<T> from_pem(const std::string& text, Read read) {
    if (text.size() > kPassedPemBytesMax) {
        return nullptr;
    }
    const Owned<BIO> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    Owned<T> found(bio ? read(bio.get()) : nullptr);
    ERR_clear_error();
    return found;
}

int choose_protocol(
    SSL* /*ssl*/,
    const unsigned char** out,
    unsigned char* out_length,
    const unsigned char* offered,
    unsigned int offered_length,
    void* /*data*/) {
    unsigned char* chosen = nullptr;
    const int found = SSL_select_next_proto(
        &chosen, out_length, kHttp11.data(), kHttp11.size(), offered, offered_length);
    *out = chosen;
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/// With the bounds that both directions share; null if the library refuses.
std::shared_ptr<asio::ssl::context> make_context(const SSL_METHOD* method) {
    SSL_CTX* raw = SSL_CTX_new(method);
    if (raw == nullptr) {
        return nullptr;
    }
    auto context = std::make_shared<asio::ssl::context>(raw);  // owns it
    const bool set = SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) == 1 &&
                     SSL_CTX_set_cipher_list(raw, kCiphers) == 1;
    (void)SSL_CTX_set_options(raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
    return set ? context : nullptr;
}

}  // namespace

struct TlsAuthority::State {
    struct Leaf {
        std::shared_ptr<asio::ssl::context> context;
        std::chrono::steady_clock::time_point made_at;
    };

    Result<Owned<X509>> make_leaf(const Host& host) const;

    std::size_t certificates_max = 0;
    Owned<EVP_PKEY> key;
    Owned<EVP_PKEY> leaf_key;
    Owned<X509> certificate;
    std::string pem;
    std::map<std::string, Leaf> leaves;
};

TlsAuthority::TlsAuthority(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsAuthority::~TlsAuthority() = default;

Result<std::unique_ptr<TlsAuthority>> TlsAuthority::create(std::size_t certificates_max) {
    auto state = std::make_unique<State>();
    state->certificates_max = certificates_max;
    BOOST_OUTCOME_TRY(state->key, make_key());
    BOOST_OUTCOME_TRY(state->leaf_key, make_key());
    state->certificate =
        begin_certificate(*state->key, kAuthoritySeconds, "Cellkeep, this server only");
    X509* own = state->certificate.get();
    const bool made =
        own != nullptr && X509_set_issuer_name(own, X509_get_subject_name(own)) == 1 &&
        add_extension(*own, *own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
        add_extension(*own, *own, NID_key_usage, "critical,keyCertSign,cRLSign") &&
        add_extension(*own, *own, NID_subject_key_identifier, "hash") &&
        X509_sign(own, state->key.get(), EVP_sha256()) > 0;
    if (!made) {
        return tls_error("make the certificate authority");
    }
    BOOST_OUTCOME_TRY(state->pem, to_pem(*own));
    return std::unique_ptr<TlsAuthority>(new TlsAuthority(std::move(state)));
}

Result<TlsAuthority::Passed> TlsAuthority::pass_on() const {
    const Owned<BIO> bio(BIO_new(BIO_s_secmem()));
    if (!bio || PEM_write_bio_PrivateKey(
                    bio.get(), state_->key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
        return tls_error("write the authority's key");
    }
    return Passed{text_in(*bio), state_->pem};
}

Result<std::unique_ptr<TlsAuthority>> TlsAuthority::go_on(
    const Passed& passed, std::size_t certificates_max) {
    auto state = std::make_unique<State>();
    state->certificates_max = certificates_max;
    // Without a password: else the library would ask the terminal for one.
    state->key = from_pem<EVP_PKEY>(passed.key, [](BIO* bio) {
        return PEM_read_bio_PrivateKey(
            bio, nullptr, [](char*, int, int, void*) { return -1; }, nullptr);
    });
    state->certificate = from_pem<X509>(passed.certificate, [](BIO* bio) {
        return PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    });
    if (!are_of_ours(state->key.get(), state->certificate.get())) {
        ERR_clear_error();
        return Error(ErrorCode::kProtocol, "passed authority: no key with its own certificate");
    }
    BOOST_OUTCOME_TRY(state->leaf_key, make_key());
    BOOST_OUTCOME_TRY(state->pem, to_pem(*state->certificate));
    return std::unique_ptr<TlsAuthority>(new TlsAuthority(std::move(state)));
}

const std::string& TlsAuthority::pem() const {
    return state_->pem;
}

std::size_t TlsAuthority::kept() const {
    return state_->leaves.size();
}

Result<Owned<X509>> TlsAuthority::State::make_leaf(const Host& host) const {
    // A common name has at most 64 characters (RFC 5280, appendix A.1) and is not looked at.
    Owned<X509> leaf = begin_certificate(*leaf_key, kLeafSeconds, "a bound host");
    const std::string names = (host.address ? "IP:" : "DNS:") + host.text;
    const bool made =
        leaf && X509_set_issuer_name(leaf.get(), X509_get_subject_name(certificate.get())) == 1 &&
        add_extension(*leaf, *certificate, NID_basic_constraints, "critical,CA:FALSE") &&
        add_extension(*leaf, *certificate, NID_key_usage, "critical,digitalSignature") &&
        add_extension(*leaf, *certificate, NID_ext_key_usage, "serverAuth") &&
        add_extension(*leaf, *certificate, NID_subject_alt_name, names) &&
        add_extension(*leaf, *certificate, NID_subject_key_identifier, "hash") &&
        add_extension(*leaf, *certificate, NID_authority_key_identifier, "keyid:always") &&
        X509_sign(leaf.get(), key.get(), EVP_sha256()) > 0;
    if (!made) {
        return tls_error("make a certificate for " + host.text);
    }
    return leaf;
}

Result<std::shared_ptr<asio::ssl::context>> TlsAuthority::context_for(const Host& host) {
    const auto now = std::chrono::steady_clock::now();
    const auto found = state_->leaves.find(host.text);
    if (found != state_->leaves.end() && now - found->second.made_at < kLeafKept) {
        return found->second.context;
    }
    BOOST_OUTCOME_TRY(const Owned<X509> leaf, state_->make_leaf(host));
    auto context = make_context(TLS_server_method());
    const bool set = context &&
                     SSL_CTX_use_certificate(context->native_handle(), leaf.get()) == 1 &&
                     SSL_CTX_use_PrivateKey(context->native_handle(), state_->leaf_key.get()) == 1;
    if (!set) {
        return tls_error("serve TLS for " + host.text);
    }
    SSL_CTX_set_alpn_select_cb(context->native_handle(), choose_protocol, nullptr);
    while (state_->leaves.size() >= state_->certificates_max &&
           !state_->leaves.contains(host.text)) {
        auto oldest = state_->leaves.begin();
        for (auto one = state_->leaves.begin(); one != state_->leaves.end(); ++one) {
            if (one->second.made_at < oldest->second.made_at) {
                oldest = one;
            }
        }
        state_->leaves.erase(oldest);
    }
    state_->leaves.insert_or_assign(host.text, State::Leaf{context, now});
    return context;
}

Result<std::shared_ptr<asio::ssl::context>> make_client_context(const std::string& extra_pem) {
    auto context = make_context(TLS_client_method());
    if (!context) {
        return tls_error("set up TLS");
    }
    context->set_verify_mode(asio::ssl::verify_peer);
    boost::system::error_code error;
    (void)context->set_default_verify_paths(error);
    if (!error && !extra_pem.empty()) {
        (void)context->add_certificate_authority(asio::buffer(extra_pem), error);
    }
    if (error ||
        SSL_CTX_set_alpn_protos(context->native_handle(), kHttp11.data(), kHttp11.size()) != 0) {
        return tls_error("load certificates");
    }
    return context;
}

std::string system_certificates() {
    for (const char* path :
         {"/etc/ssl/certs/ca-certificates.crt",
          "/etc/pki/tls/certs/ca-bundle.crt",
          "/etc/ssl/ca-bundle.pem",
          "/etc/ssl/cert.pem"}) {
        auto pem = read_file(path, kBundleBytesMax);
        if (pem.has_value() && !pem.value().empty()) {
            return std::move(pem).value();
        }
    }
    return {};
}

Status check_certificates(const std::string& pem) {
    const Owned<BIO> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    const Owned<X509> first(
        bio ? PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr) : nullptr);
    ERR_clear_error();
    if (!first) {
        return Error(ErrorCode::kInvalidArgument, "no certificate in PEM form");
    }
    return ok();
}

}  // namespace cellkeep::egress
