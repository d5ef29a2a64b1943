// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/access/auth.hpp"

#include "kernel-manager/http/access/host_field.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/text.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <utility>

namespace cellkeep::http {

TokenDigest digest_of_token(std::string_view token) {
    TokenDigest digest{};
    unsigned int size = 0;
    const int made =
        EVP_Digest(token.data(), token.size(), digest.data(), &size, EVP_sha256(), nullptr);
    CELLKEEP_CHECK(made == 1 && size == digest.size());
    return digest;
}

bool equal_digests(const TokenDigest& left, const TokenDigest& right) {
    return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

TokenAuth::TokenAuth(std::string_view token, std::vector<NamedToken> named)
    : admin_(digest_of_token(token)), named_(std::move(named)) {
    CELLKEEP_CHECK(!token.empty());
}

std::optional<Principal> TokenAuth::find(std::string_view token) const {
    const TokenDigest given = digest_of_token(token);
    const bool admin = equal_digests(given, admin_);
    // Compares all of them: the time that this takes does not reveal where in the file a token is.
    const NamedToken* found = nullptr;
    for (const NamedToken& one : named_) {
        found = equal_digests(given, one.digest) ? &one : found;
    }
    if (admin) {
        return Principal{std::string(kAdminName), Role::kAdmin};
    }
    if (found == nullptr || token.size() < limits::kTokenBytesMin) {
        return std::nullopt;
    }
    return found->principal;
}

bool TokenAuth::uses_header(const Request& request) {
    return has_authorization(request) || request.headers.find("X-API-Key") != nullptr;
}

bool TokenAuth::has_authorization(const Request& request) {
    const std::string* header = request.headers.find("Authorization");
    if (header == nullptr) {
        return false;
    }
    const std::string_view text = trim(*header);
    return !equals_ignoring_case(text, "token") && !equals_ignoring_case(text, "bearer");
}

std::optional<Principal> TokenAuth::authenticate(const Request& request) const {
    std::string given;
    if (has_authorization(request)) {
        const std::string_view text = trim(request.headers.get("Authorization"));
        const std::size_t space = text.find(' ');
        if (space == std::string_view::npos) {
            return std::nullopt;
        }
        const std::string_view scheme = text.substr(0, space);
        if (!equals_ignoring_case(scheme, "bearer") && !equals_ignoring_case(scheme, "token")) {
            return std::nullopt;
        }
        given = trim(text.substr(space + 1));
    } else if (const std::string* key = request.headers.find("X-API-Key")) {
        given = trim(*key);
    } else {
        given = request.target.find_query("token").value_or("");
    }
    return find(given);
}

HostGuard::HostGuard(std::vector<std::string> names) : enforced_(true), names_(std::move(names)) {
    for (const char* name : {"localhost", "127.0.0.1", "[::1]"}) {
        names_.emplace_back(name);
    }
}

bool HostGuard::allows(std::string_view host_header) const {
    if (!enforced_) {
        return true;
    }
    const auto host = host_of(host_header);
    if (!host || knows(*host)) {
        return host.has_value();
    }
    const auto sandbox = split_sandbox_host(*host);
    return sandbox && knows(sandbox->name);
}

bool HostGuard::knows(std::string_view host) const {
    return std::any_of(names_.begin(), names_.end(), [host](const std::string& name) {
        return equals_ignoring_case(host, name);
    });
}

}  // namespace cellkeep::http
