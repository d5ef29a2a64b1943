// SPDX-License-Identifier: Apache-2.0
//
// Tokens that let their bearer use one port of one session, and nothing else, for a while. Of a
// token only its digest is kept. Nothing outlives the server's process. io_context thread only.
#pragma once

#include "kernel-manager/http/access/auth.hpp"
#include "kernel-manager/preview/limits.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::preview {

inline constexpr std::string_view kTokenIdPrefix = "ptk_";

class PreviewTokens {
 public:
    using Clock = std::chrono::system_clock;

    struct Info {
        std::string id;  // "ptk_…"
        std::uint16_t port = 0;
        Clock::time_point expires_at;
    };
    struct Issued {
        Info info;
        std::string token;
    };
    struct Kept {
        Info info;
        http::TokenDigest digest{};
    };
    using BySession = std::map<std::string, std::vector<Kept>, std::less<>>;

    /// kLimitExceeded: the session has kPreviewTokensMax that have not expired. Fails as
    /// getrandom(2) does.
    Result<Issued> issue(
        const std::string& session_id,
        std::uint16_t port,
        std::chrono::seconds lasts,
        Clock::time_point now);
    /// In constant time for each token of the session. Null: it is unknown, has expired, was
    /// revoked, or is of another port or session. Valid until the next change.
    const Info* find(
        std::string_view session_id,
        std::uint16_t port,
        std::string_view token,
        Clock::time_point now) const;
    /// Those that have not expired, in the order in which they were issued.
    std::vector<Info> list(
        const std::string& session_id, std::uint16_t port, Clock::time_point now) const;
    /// Of any port, whether they have expired or not.
    bool has_any(std::string_view session_id) const { return by_session_.contains(session_id); }
    /// kNotFound.
    Status revoke(const std::string& session_id, std::uint16_t port, std::string_view token_id);
    /// The session has ended.
    void forget(const std::string& session_id);

    /// What another program in the server's process needs for the tokens to stay good.
    const BySession& all() const { return by_session_; }
    /// Of the program before, instead of what is here.
    void go_on(BySession tokens) { by_session_ = std::move(tokens); }

 private:
    BySession by_session_;
};

}  // namespace cellkeep::preview
