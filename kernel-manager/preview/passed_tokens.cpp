// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/passed_tokens.hpp"

#include "protocol/base64.hpp"
#include "protocol/support/passed_time.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::preview {

using nlohmann::json;

namespace {

constexpr std::size_t kIdCharactersMax = 64;

Error no_token(const std::string& why) {
    return {ErrorCode::kProtocol, "passed tokens of ports: " + why};
}

Result<http::TokenDigest> read_digest(const json& text) {
    const auto bytes = protocol::decode_base64(text.get<std::string>());
    http::TokenDigest digest{};
    if (!bytes || bytes->size() != digest.size()) {
        return no_token("a digest of another length");
    }
    std::copy(bytes->begin(), bytes->end(), digest.begin());
    return digest;
}

Result<PreviewTokens::Kept> read_one(const json& text) {
    PreviewTokens::Kept kept;
    kept.info.id = text.at("id").get<std::string>();
    if (!kept.info.id.starts_with(kTokenIdPrefix) || kept.info.id.size() > kIdCharactersMax) {
        return no_token("an id that is none");
    }
    const json& port = text.at("port");
    if (!port.is_number_unsigned() || port.get<std::uint64_t>() == 0 ||
        port.get<std::uint64_t>() > std::numeric_limits<std::uint16_t>::max()) {
        return no_token("a port that is none");
    }
    kept.info.port = port.get<std::uint16_t>();
    if (!text.at("expires_at").is_number_integer()) {
        return no_token("no time at which it expires");
    }
    kept.info.expires_at =
        from_ticks<PreviewTokens::Clock::time_point>(text.at("expires_at").get<std::int64_t>());
    BOOST_OUTCOME_TRY(kept.digest, read_digest(text.at("digest")));
    return kept;
}

Result<std::vector<PreviewTokens::Kept>> read_session(const json& text) {
    if (!text.is_array() || text.size() > kPreviewTokensMax) {
        return no_token("no list of up to " + std::to_string(kPreviewTokensMax));
    }
    std::vector<PreviewTokens::Kept> all;
    std::set<std::string> ids;
    for (const json& one : text) {
        BOOST_OUTCOME_TRY(auto kept, read_one(one));
        if (!ids.insert(kept.info.id).second) {
            return no_token("an id comes twice");
        }
        all.push_back(std::move(kept));
    }
    return all;
}

}  // namespace

json write_tokens(const PreviewTokens::BySession& tokens) {
    json sessions = json::object();
    for (const auto& [session_id, all] : tokens) {
        json& written = sessions[session_id] = json::array();
        for (const PreviewTokens::Kept& kept : all) {
            const std::string digest(kept.digest.begin(), kept.digest.end());
            written.push_back(
                {{"id", kept.info.id},
                 {"port", kept.info.port},
                 {"expires_at", to_ticks(kept.info.expires_at)},
                 {"digest", protocol::encode_base64(digest)}});
        }
    }
    return sessions;
}

Result<PreviewTokens::BySession> read_tokens(const json& text) {
    if (!text.is_object()) {
        return no_token("no sessions");
    }
    try {
        PreviewTokens::BySession tokens;
        for (const auto& [session_id, all] : text.items()) {
            BOOST_OUTCOME_TRY(auto kept, read_session(all));
            tokens.emplace(session_id, std::move(kept));
        }
        return tokens;
    } catch (const json::exception& failure) {
        return no_token(failure.what());
    }
}

}  // namespace cellkeep::preview
