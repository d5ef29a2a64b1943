// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/asking/state_seal.hpp"

#include "kernel-manager/http/access/auth.hpp"
#include "kernel-manager/mcp/limits.hpp"
#include "protocol/base64.hpp"
#include "protocol/json.hpp"
#include "protocol/support/syscall.hpp"

#include <utility>

namespace cellkeep::mcp {

namespace {

constexpr std::size_t kSealKeyBytes = 32;

Error broken_seal() {
    return {
        ErrorCode::kPermissionDenied, "This request state is not this server's for this request."};
}

std::int64_t to_milliseconds(StateSeal::Time time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

}  // namespace

Status StateSeal::use_key(std::string key) {
    BOOST_OUTCOME_TRY(protocol::Signer signer, protocol::Signer::create("hmac-sha256", key));
    signer_.emplace(std::move(signer));
    key_ = std::move(key);
    return ok();
}

Result<std::string> StateSeal::seal(
    const std::string& subject, const nlohmann::json& memory, Time now) {
    if (!signer_) {
        BOOST_OUTCOME_TRY(std::string key, secret_hex(kSealKeyBytes));
        BOOST_OUTCOME_TRY(use_key(std::move(key)));
    }
    const std::string body = protocol::encode_base64(protocol::dump_json(
        {{"for", subject},
         {"until", to_milliseconds(now + kRequestStateLife)},
         {"memory", memory}}));
    std::string text = body + "." + signer_->sign(body, "", "", "");
    if (text.size() > kRequestStateBytesMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "The request would have to remember more than " +
                std::to_string(kRequestStateBytesMax) + " bytes.");
    }
    return text;
}

Result<nlohmann::json> StateSeal::open(
    std::string_view text, const std::string& subject, Time now) const {
    const std::size_t dot = text.find('.');
    if (!signer_ || text.size() > kRequestStateBytesMax || dot == std::string_view::npos) {
        return broken_seal();
    }
    const std::string_view body = text.substr(0, dot);
    const std::string expected = signer_->sign(body, "", "", "");
    if (!http::equal_digests(
            http::digest_of_token(text.substr(dot + 1)), http::digest_of_token(expected))) {
        return broken_seal();
    }
    // From here on it is a text of ours.
    const auto bytes = protocol::decode_base64(body);
    auto state = protocol::parse_json_object(bytes.value_or(""), "the request state");
    if (state.has_error() || state.value().value("for", std::string()) != subject ||
        state.value().value("until", std::int64_t{0}) < to_milliseconds(now)) {
        return broken_seal();
    }
    return std::move(state.value()["memory"]);
}

}  // namespace cellkeep::mcp
