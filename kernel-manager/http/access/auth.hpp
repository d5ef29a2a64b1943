// SPDX-License-Identifier: Apache-2.0
//
// Which clients may use this server: those with its token or one of the token file's. And a guard
// on the Host header. Of tokens only digests are kept; they are compared in constant time, all of
// them whichever fits, and never logged. There are no cookies, so there is nothing for a foreign
// page to ride on; the Host guard keeps a page whose name was rebound to 127.0.0.1 from even
// reaching the token check.
#pragma once

#include "kernel-manager/http/message/request.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::http {

/// SHA-256 (FIPS 180-4). Not keyed: tokens are too long and random to be found by trying.
using TokenDigest = std::array<unsigned char, 32>;
TokenDigest digest_of_token(std::string_view token);
/// In constant time (CRYPTO_memcmp(3)).
bool equal_digests(const TokenDigest& left, const TokenDigest& right);

/// A principal and the digest of its token.
struct NamedToken {
    Principal principal;
    TokenDigest digest{};
};

/// Read-only once made: any thread.
class TokenAuth {
 public:
    /// token: the administrator's, not empty. named: the token file's; a token shorter than
    /// limits::kTokenBytesMin is none of theirs, whatever its digest.
    explicit TokenAuth(std::string_view token, std::vector<NamedToken> named = {});
    /// `Authorization: Bearer T` or `token T` (scheme without case, RFC 9110, section 11.1), or
    /// `X-API-Key: T`, or ?token=T: the first of them that is there decides alone, so that a wrong
    /// header is not rescued by a right query. An Authorization header with a scheme and nothing
    /// behind it counts as none (jupyter_server's gateway client sends "token ").
    /// Returns nullopt if the token is missing or unknown.
    std::optional<Principal> authenticate(const Request& request) const;
    /// The principal of one token, wherever it was sent; nullopt if it is unknown.
    std::optional<Principal> find(std::string_view token) const;
    /// Whether the request has one of the two headers. No page of another origin can send either
    /// without asking first (Fetch standard, "CORS-safelisted request-header").
    static bool uses_header(const Request& request);

 private:
    static bool has_authorization(const Request& request);

    TokenDigest admin_;
    std::vector<NamedToken> named_;
};

class HostGuard {
 public:
    /// Everything passes (a server that listens beyond loopback).
    HostGuard() = default;
    /// localhost, 127.0.0.1, [::1] and the names given, with any port, and what stands below one of
    /// them as split_sandbox_host() has it.
    explicit HostGuard(std::vector<std::string> names);
    /// False for a malformed field too, unless everything passes.
    bool allows(std::string_view host_header) const;

 private:
    bool knows(std::string_view host) const;

    bool enforced_ = false;
    std::vector<std::string> names_;
};

}  // namespace cellkeep::http
