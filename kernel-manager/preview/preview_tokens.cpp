// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/preview_tokens.hpp"

#include "protocol/support/syscall.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::preview {

namespace {

constexpr std::size_t kTokenBytes = 24;
constexpr std::size_t kTokenIdBytes = 8;

}  // namespace

Result<PreviewTokens::Issued> PreviewTokens::issue(
    const std::string& session_id,
    std::uint16_t port,
    std::chrono::seconds lasts,
    Clock::time_point now) {
    std::vector<Kept>& kept = by_session_[session_id];
    kept.erase(
        std::remove_if(
            kept.begin(),
            kept.end(),
            [now](const Kept& one) { return one.info.expires_at <= now; }),
        kept.end());
    if (kept.size() >= kPreviewTokensMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "tokens: the session has its " + std::to_string(kPreviewTokensMax) +
                " tokens of preview addresses");
    }
    BOOST_OUTCOME_TRY(const auto secret, secret_hex(kTokenBytes));
    BOOST_OUTCOME_TRY(const auto id, random_hex(kTokenIdBytes));
    Issued issued{{std::string(kTokenIdPrefix) + id, port, now + lasts}, "cpt_" + secret};
    kept.push_back({issued.info, http::digest_of_token(issued.token)});
    return issued;
}

const PreviewTokens::Info* PreviewTokens::find(
    std::string_view session_id,
    std::uint16_t port,
    std::string_view token,
    Clock::time_point now) const {
    const auto session = by_session_.find(session_id);
    if (session == by_session_.end() || token.empty()) {
        return nullptr;
    }
    const http::TokenDigest given = http::digest_of_token(token);
    const Info* found = nullptr;
    for (const Kept& one : session->second) {
        found = http::equal_digests(given, one.digest) ? &one.info : found;
    }
    const bool fits = found != nullptr && found->port == port && found->expires_at > now;
    return fits ? found : nullptr;
}

std::vector<PreviewTokens::Info> PreviewTokens::list(
    const std::string& session_id, std::uint16_t port, Clock::time_point now) const {
    std::vector<Info> all;
    if (const auto session = by_session_.find(session_id); session != by_session_.end()) {
        for (const Kept& one : session->second) {
            if (one.info.port == port && one.info.expires_at > now) {
                all.push_back(one.info);
            }
        }
    }
    return all;
}

Status PreviewTokens::revoke(
    const std::string& session_id, std::uint16_t port, std::string_view token_id) {
    const auto session = by_session_.find(session_id);
    if (session != by_session_.end()) {
        auto& kept = session->second;
        const auto found = std::find_if(kept.begin(), kept.end(), [&](const Kept& one) {
            return one.info.id == token_id && one.info.port == port;
        });
        if (found != kept.end()) {
            kept.erase(found);
            return ok();
        }
    }
    return Error(ErrorCode::kNotFound, "there is no such token of this port");
}

void PreviewTokens::forget(const std::string& session_id) {
    by_session_.erase(session_id);
}

}  // namespace cellkeep::preview
