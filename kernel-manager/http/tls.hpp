// SPDX-License-Identifier: Apache-2.0
//
// The server's certificate and key, and how TLS is spoken here: 1.2 and newer, forward secrecy,
// authenticated ciphers, no compression, no renegotiation. OpenSSL is seen by tls.cpp and
// transport.hpp only. Read-only after loading; shared by the listeners.
#pragma once

#include "protocol/support/result.hpp"

#include <memory>
#include <string>

namespace boost::asio::ssl {
class context;
}

namespace cellkeep::http {

class TlsContext {
 public:
    /// PEM files: the certificate with the chain behind it, and its key without a passphrase.
    /// kInvalidArgument names the file; a key that everybody can read or write is refused.
    static Result<std::shared_ptr<TlsContext>> load(
        const std::string& certificate_path, const std::string& key_path);
    explicit TlsContext(std::unique_ptr<boost::asio::ssl::context> context);
    TlsContext(const TlsContext&) = delete;
    TlsContext& operator=(const TlsContext&) = delete;
    ~TlsContext();

    boost::asio::ssl::context& native() { return *context_; }

 private:
    std::unique_ptr<boost::asio::ssl::context> context_;
};

}  // namespace cellkeep::http
