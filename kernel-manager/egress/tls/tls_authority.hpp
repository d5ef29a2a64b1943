// SPDX-License-Identifier: Apache-2.0
//
// The server's own certificate authority, for the hosts that secrets are bound to and for nothing
// else: made anew at every start, its key never leaves this process's memory, its certificate is
// given to sessions that use secrets. A program that takes over in this process has the same one,
// because those sessions trust no other. Leaves are made per host and kept. io_context thread only.
#pragma once

#include "kernel-manager/egress/target.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/ssl/context.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace cellkeep::egress {

class TlsAuthority {
 public:
    /// For another program in the server's process. The key is a secret of the server's.
    struct Passed {
        std::string key;          // PEM
        std::string certificate;  // PEM
    };

    static Result<std::unique_ptr<TlsAuthority>> create(
        std::size_t certificates_max = limits::kEgressCertificatesMax);
    /// One that another program has left. kProtocol: that is not a key and its own certificate, as
    /// create() makes them.
    static Result<std::unique_ptr<TlsAuthority>> go_on(
        const Passed& passed, std::size_t certificates_max = limits::kEgressCertificatesMax);
    TlsAuthority(const TlsAuthority&) = delete;
    TlsAuthority& operator=(const TlsAuthority&) = delete;
    ~TlsAuthority();

    /// Its certificate.
    const std::string& pem() const;
    Result<Passed> pass_on() const;
    /// A server's context with a certificate for that host and HTTP/1.1 as the only protocol.
    Result<std::shared_ptr<boost::asio::ssl::context>> context_for(const Host& host);
    std::size_t kept() const;

 private:
    struct State;
    explicit TlsAuthority(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

/// A client's context that verifies servers by the host's certificates and those in extra_pem.
Result<std::shared_ptr<boost::asio::ssl::context>> make_client_context(
    const std::string& extra_pem);

/// The host's bundle of certificates, or empty if none is found.
std::string system_certificates();
/// kInvalidArgument unless the text holds at least one certificate in PEM form.
Status check_certificates(const std::string& pem);

}  // namespace cellkeep::egress
