// SPDX-License-Identifier: Apache-2.0
//
// Who may talk to this server: one token, and a guard on the Host header. The token is compared in
// constant time and never logged. There are no cookies, so there is nothing for a foreign page to
// ride on; the Host guard keeps a page whose name was rebound to 127.0.0.1 from even reaching the
// token check.
#pragma once

#include "kernel-manager/http/request.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::http {

class TokenAuth {
 public:
    /// The token must not be empty.
    explicit TokenAuth(std::string token);
    /// `Authorization: Bearer T` or `token T` (scheme without case, RFC 9110, section 11.1), or
    /// ?token=T. A wrong Authorization header is not rescued by a right query; one with a scheme
    /// and nothing behind it counts as none (jupyter_server's gateway client sends "token ").
    std::optional<Principal> authenticate(const Request& request) const;
    /// Whether an Authorization header is what decides.
    static bool uses_header(const Request& request);

 private:
    std::string token_;
};

class HostGuard {
 public:
    /// Everything passes (a server that listens beyond loopback).
    HostGuard() = default;
    /// localhost, 127.0.0.1, [::1] and the names given, with any port.
    explicit HostGuard(std::vector<std::string> names);
    bool allows(std::string_view host_header) const;

 private:
    bool enforced_ = false;
    std::vector<std::string> names_;
};

/// Equal in constant time for equal lengths (CRYPTO_memcmp(3)).
bool equal_secrets(std::string_view left, std::string_view right);

}  // namespace cellkeep::http
