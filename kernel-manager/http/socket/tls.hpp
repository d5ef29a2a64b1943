// SPDX-License-Identifier: Apache-2.0
//
// The server's certificate and key, and how TLS is spoken here: 1.2 and newer, forward secrecy,
// authenticated ciphers, no compression, no renegotiation. OpenSSL is seen by tls.cpp
// and transport.hpp only. Read-only after loading; shared by the listeners.
#pragma once

#include "protocol/support/result.hpp"

#include <memory>
#include <string>

namespace boost::asio::ssl {
class context;
}

struct ssl_st;  // SSL of openssl/types.h

namespace cellkeep::http {

/// SHA-256 of the certificate that the peer has shown (DER), as lower-case hexadecimal digits; ""
/// if it has shown none.
std::string peer_certificate_sha256(const ssl_st* connection);

class TlsContext {
 public:
    /// PEM files: the certificate with the chain behind it, and its key without a passphrase.
    /// kInvalidArgument names the file; a key that every user can read or write is refused.
    static Result<std::shared_ptr<TlsContext>> load(
        const std::string& certificate_path, const std::string& key_path);
    /// For a client, who compares the certificate himself (client_stream.cpp).
    static std::shared_ptr<TlsContext> for_client();
    explicit TlsContext(std::unique_ptr<boost::asio::ssl::context> context, bool client = false);
    TlsContext(const TlsContext&) = delete;
    TlsContext& operator=(const TlsContext&) = delete;
    ~TlsContext();

    boost::asio::ssl::context& native() { return *context_; }
    bool is_client() const { return client_; }
    /// As peer_certificate_sha256() of a client that this context serves.
    std::string certificate_sha256() const;

 private:
    std::unique_ptr<boost::asio::ssl::context> context_;
    bool client_;
};

}  // namespace cellkeep::http
