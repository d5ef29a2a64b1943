// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/preview_tokens.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace cellkeep::preview {
namespace {

using namespace std::chrono_literals;

const PreviewTokens::Clock::time_point kNow{1'800'000'000s};

PreviewTokens::Issued issue(
    PreviewTokens& tokens,
    const std::string& session,
    std::uint16_t port,
    PreviewTokens::Clock::time_point now = kNow) {
    auto issued = tokens.issue(session, port, 60s, now);
    REQUIRE(issued.has_value());
    return std::move(issued).value();
}

TEST_CASE("a token is for one port of one session until it expires", "[preview]") {
    PreviewTokens tokens;
    const auto one = issue(tokens, "ses_1", 80);
    const auto other = issue(tokens, "ses_2", 80);
    CHECK(one.token != other.token);
    REQUIRE(tokens.find("ses_1", 80, one.token, kNow) != nullptr);
    CHECK(tokens.find("ses_1", 80, one.token, kNow)->id == one.info.id);
    CHECK(tokens.find("ses_1", 80, one.token, kNow + 59s) != nullptr);
    CHECK(tokens.find("ses_1", 80, one.token, kNow + 60s) == nullptr);
    CHECK(tokens.find("ses_1", 81, one.token, kNow) == nullptr);
    CHECK(tokens.find("ses_2", 80, one.token, kNow) == nullptr);
    CHECK(tokens.find("ses_3", 80, one.token, kNow) == nullptr);
    for (const std::string& wrong : {std::string(), one.token + "x", one.info.id}) {
        CHECK(tokens.find("ses_1", 80, wrong, kNow) == nullptr);
    }
}

TEST_CASE("a token is revoked, and forgotten with its session", "[preview]") {
    PreviewTokens tokens;
    const auto one = issue(tokens, "ses_1", 80);
    const auto two = issue(tokens, "ses_1", 80);
    CHECK(tokens.revoke("ses_1", 81, one.info.id).has_error());
    CHECK(tokens.revoke("ses_2", 80, one.info.id).has_error());
    CHECK(tokens.revoke("ses_1", 80, one.token).has_error());
    CHECK(tokens.revoke("ses_1", 80, one.info.id).has_value());
    CHECK(tokens.revoke("ses_1", 80, one.info.id).has_error());
    CHECK(tokens.find("ses_1", 80, one.token, kNow) == nullptr);
    CHECK(tokens.find("ses_1", 80, two.token, kNow) != nullptr);
    CHECK(tokens.list("ses_1", 80, kNow).size() == 1);
    CHECK(tokens.list("ses_1", 81, kNow).empty());
    tokens.forget("ses_1");
    CHECK(tokens.find("ses_1", 80, two.token, kNow) == nullptr);
    CHECK(tokens.list("ses_1", 80, kNow).empty());
}

TEST_CASE("a session has a bounded number of tokens that have not expired", "[preview]") {
    PreviewTokens tokens;
    for (std::size_t i = 0; i < kPreviewTokensMax; ++i) {
        (void)issue(tokens, "ses_1", static_cast<std::uint16_t>(1 + i));
    }
    const auto refused = tokens.issue("ses_1", 80, 60s, kNow);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    CHECK(tokens.issue("ses_2", 80, 60s, kNow).has_value());
    CHECK(tokens.issue("ses_1", 80, 60s, kNow + 60s).has_value());
}

}  // namespace
}  // namespace cellkeep::preview
