// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/wire/sandbox_tokens.hpp"

#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/http/access/auth.hpp"
#include "protocol/base64.hpp"
#include "protocol/support/random_pool.hpp"

#include <algorithm>
#include <charconv>

namespace cellkeep::e2b {

namespace {

std::string_view bytes_of(const http::TokenDigest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string to_hex(std::string_view bytes) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const char one : bytes) {
        const auto byte = static_cast<unsigned char>(one);
        text += kDigits[byte >> 4U];
        text += kDigits[byte & 15U];
    }
    return text;
}

/// In constant time, whatever their lengths.
bool equal(std::string_view left, std::string_view right) {
    return http::equal_digests(http::digest_of_token(left), http::digest_of_token(right));
}

std::string sign(const SandboxTokens::SignedUse& use, std::string_view token) {
    std::string text = use.path + ":" + use.operation + ":" + use.user + ":" + std::string(token);
    if (use.expiration) {
        text += ":" + *use.expiration;
    }
    std::string encoded = protocol::encode_base64(bytes_of(http::digest_of_token(text)));
    encoded.erase(encoded.find_last_not_of('=') + 1);
    return "v1_" + encoded;
}

/// A user with a colon in its name would move the border between what is signed: a signature for
/// one path would be one for another path and another use.
bool is_plain_user(std::string_view user) {
    return user.size() <= kUserBytesMax && std::all_of(user.begin(), user.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-' || c == '.';
           });
}

bool has_passed(const std::string& expiration, std::chrono::system_clock::time_point now) {
    std::int64_t seconds = 0;
    const char* end = expiration.data() + expiration.size();
    const auto [stop, failed] = std::from_chars(expiration.data(), end, seconds);
    return failed != std::errc() || stop != end ||
           seconds <
               std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
}

}  // namespace

Result<SandboxTokens> SandboxTokens::create() {
    Key key{};
    BOOST_OUTCOME_TRY(fill_random(key));
    return SandboxTokens(key);
}

Status SandboxTokens::use_key(std::string_view key) {
    if (key.size() != key_.size()) {
        return Error(ErrorCode::kProtocol, "a key of another length");
    }
    std::copy(key.begin(), key.end(), key_.begin());
    return ok();
}

std::string SandboxTokens::token(Use use, std::string_view session_id) const {
    const std::string key(reinterpret_cast<const char*>(key_.data()), key_.size());
    const std::string text = (use == Use::kEnvd ? "envd:" : "traffic:") + std::string(session_id);
    // As in HMAC, the outer digest prevents that a client extends the inner one (length extension).
    const http::TokenDigest inner = http::digest_of_token(key + text);
    return to_hex(bytes_of(http::digest_of_token(key + std::string(bytes_of(inner)))));
}

bool SandboxTokens::fits(Use use, std::string_view session_id, std::string_view given) const {
    return equal(token(use, session_id), given);
}

SandboxTokens::Verdict SandboxTokens::check(
    std::string_view session_id,
    const SignedUse& use,
    std::chrono::system_clock::time_point now) const {
    if (!is_plain_user(use.user)) {
        return Verdict::kWrong;
    }
    if (!equal(sign(use, token(Use::kEnvd, session_id)), use.signature)) {
        return Verdict::kWrong;
    }
    return use.expiration && has_passed(*use.expiration, now) ? Verdict::kExpired : Verdict::kFits;
}

}  // namespace cellkeep::e2b
