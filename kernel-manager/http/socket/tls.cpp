// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/socket/tls.hpp"

#include "protocol/support/syscall.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace cellkeep::http {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kPemBytesMax = 1ULL << 20U;
/// TLS 1.2 (TLS 1.3 has only good ones): ephemeral keys and authenticated encryption.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

Error refuse_tls(const std::string& path, const std::string& why) {
    return {ErrorCode::kInvalidArgument, path + ": " + why};
}

Status check_key_mode(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) {
        return Error::from_errno(errno, "open(" + path + ")");
    }
    if ((status.st_mode & static_cast<mode_t>(S_IRWXO)) != 0) {
        return refuse_tls(path, "every user can reach this key; chmod 600 it");
    }
    return ok();
}

/// An encrypted key must not make the server ask for its passphrase on a terminal.
int refuse_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) {
    return -1;
}

std::unique_ptr<asio::ssl::context> make_context() {
    SSL_CTX* raw = SSL_CTX_new(TLS_server_method());
    if (raw == nullptr) {
        return nullptr;
    }
    auto context = std::make_unique<asio::ssl::context>(raw);  // owns it
    const bool set = SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) == 1 &&
                     SSL_CTX_set_cipher_list(raw, kCiphers) == 1;
    if (!set) {
        return nullptr;
    }
    (void)SSL_CTX_set_options(
        raw,
        SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
            SSL_OP_NO_TICKET);
    // One process, one key: clients may resume nothing that outlives it.
    (void)SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_default_passwd_cb(raw, refuse_passphrase);
    return context;
}

std::string sha256_of(const X509* certificate) {
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    unsigned int size = digest.size();
    if (certificate == nullptr ||
        X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) {
        return {};
    }
    std::string text;
    for (const unsigned char byte : digest) {
        static constexpr std::string_view kLowerHex = "0123456789abcdef";
        text.push_back(kLowerHex[byte >> 4U]);
        text.push_back(kLowerHex[byte & 0xFU]);
    }
    return text;
}

}  // namespace

std::string peer_certificate_sha256(const ssl_st* connection) {
    return sha256_of(SSL_get0_peer_certificate(connection));
}

TlsContext::TlsContext(std::unique_ptr<asio::ssl::context> context, bool client)
    : context_(std::move(context)), client_(client) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::load(
    const std::string& certificate_path, const std::string& key_path) {
    BOOST_OUTCOME_TRY(const std::string certificate, read_file(certificate_path, kPemBytesMax));
    BOOST_OUTCOME_TRY(check_key_mode(key_path));
    BOOST_OUTCOME_TRY(const std::string key, read_file(key_path, kPemBytesMax));
    auto context = make_context();
    if (!context) {
        return Error(ErrorCode::kSystem, "the TLS library cannot be set up");
    }
    boost::system::error_code error;
    (void)context->use_certificate_chain(asio::buffer(certificate), error);
    if (error) {
        return refuse_tls(certificate_path, "no certificate in PEM form (" + error.message() + ")");
    }
    (void)context->use_private_key(asio::buffer(key), asio::ssl::context::pem, error);
    if (error) {
        return refuse_tls(
            key_path,
            "no usable key in PEM form without a passphrase, or not that of the certificate (" +
                error.message() + ")");
    }
    if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
        ERR_clear_error();
        return refuse_tls(key_path, "not the key of the certificate in " + certificate_path);
    }
    return std::make_shared<TlsContext>(std::move(context));
}

std::shared_ptr<TlsContext> TlsContext::for_client() {
    constexpr bool kClient = true;
    return std::make_shared<TlsContext>(
        std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client), kClient);
}

std::string TlsContext::certificate_sha256() const {
    return sha256_of(SSL_CTX_get0_certificate(context_->native_handle()));
}

}  // namespace cellkeep::http
