// SPDX-License-Identifier: Apache-2.0
//
// What one program writes of tokens of ports, and the next one reads or refuses.
#include "kernel-manager/preview/passed_tokens.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <string>

namespace cellkeep::preview {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr const char* kSession = "ses_0123456789abcdef01234567";
const PreviewTokens::Clock::time_point kThen{1'800'000'000s};

json through_bytes(const PreviewTokens& tokens) {
    return json::from_cbor(json::to_cbor(write_tokens(tokens.all())));
}

/// One token of two ports each.
json written() {
    PreviewTokens tokens;
    for (const std::uint16_t port : {std::uint16_t{80}, std::uint16_t{65'535}}) {
        REQUIRE(tokens.issue(kSession, port, 60s, kThen).has_value());
    }
    return through_bytes(tokens);
}

bool is_refused(const json& text) {
    const auto read = read_tokens(text);
    return read.has_error() && read.error().code() == ErrorCode::kProtocol;
}

TEST_CASE(
    "a token is good in the next program, for its port and time alone", "[preview][passing]") {
    PreviewTokens before;
    const auto one = before.issue(kSession, 80, 60s, kThen).value();
    const auto revoked = before.issue(kSession, 80, 60s, kThen).value();
    REQUIRE(before.revoke(kSession, 80, revoked.info.id).has_value());
    PreviewTokens after;
    CHECK(after.find(kSession, 80, one.token, kThen) == nullptr);
    auto read = read_tokens(through_bytes(before));
    REQUIRE(read.has_value());
    after.go_on(std::move(read).value());
    REQUIRE(after.find(kSession, 80, one.token, kThen) != nullptr);
    CHECK(after.find(kSession, 80, one.token, kThen)->id == one.info.id);
    CHECK(after.find(kSession, 80, one.token, kThen + 59s) != nullptr);
    CHECK(after.find(kSession, 80, one.token, kThen + 60s) == nullptr);
    CHECK(after.find(kSession, 81, one.token, kThen) == nullptr);
    CHECK(after.find("ses_other", 80, one.token, kThen) == nullptr);
    CHECK(after.find(kSession, 80, revoked.token, kThen) == nullptr);
    CHECK(after.revoke(kSession, 80, one.info.id).has_value());
    CHECK(after.find(kSession, 80, one.token, kThen) == nullptr);
}

TEST_CASE("no token itself passes", "[preview][passing]") {
    PreviewTokens tokens;
    const auto issued = tokens.issue(kSession, 80, 60s, kThen).value();
    const std::string text = write_tokens(tokens.all()).dump();
    CHECK(text.find(issued.info.id) != std::string::npos);
    CHECK(text.find(issued.token) == std::string::npos);
    CHECK(text.find(issued.token.substr(4)) == std::string::npos);
}

TEST_CASE("as many tokens pass as a session has, and not one more", "[preview][passing]") {
    PreviewTokens tokens;
    for (std::size_t i = 0; i < kPreviewTokensMax; ++i) {
        REQUIRE(tokens.issue(kSession, 80, 60s, kThen).has_value());
    }
    json text = through_bytes(tokens);
    CHECK(read_tokens(text).value().at(kSession).size() == kPreviewTokensMax);
    text[kSession].push_back(text[kSession][0]);
    text[kSession].back()["id"] = "ptk_another";
    CHECK(is_refused(text));
}

TEST_CASE("a server without tokens passes none", "[preview][passing]") {
    CHECK(read_tokens(through_bytes(PreviewTokens())).value().empty());
    CHECK(read_tokens(written()).value().at(kSession).size() == 2);
}

TEST_CASE("tokens of another form do not pass", "[preview][passing]") {
    for (const json& wrong : {json(), json(5), json("{}"), json::array(), json::array({1})}) {
        CAPTURE(wrong);
        CHECK(is_refused(wrong));
    }
    for (const json& wrong : {json(), json(5), json("x"), json::object({{"a", 1}})}) {
        json text = written();
        text[kSession] = wrong;
        CAPTURE(wrong);
        CHECK(is_refused(text));
    }
    for (const char* name : {"id", "port", "expires_at", "digest"}) {
        CAPTURE(name);
        json text = written();
        text[kSession][1].erase(name);
        CHECK(is_refused(text));
        for (const json& wrong : {json(), json::array(), json(1.5), json(true)}) {
            text = written();
            text[kSession][1][name] = wrong;
            CAPTURE(wrong);
            CHECK(is_refused(text));
        }
    }
    const auto with = [](const char* name, const json& value) {
        json text = written();
        text[kSession][0][name] = value;
        return text;
    };
    for (const json& port : {json(0), json(-1), json(65'536)}) {
        CHECK(is_refused(with("port", port)));
    }
    CHECK(is_refused(with("id", "cpt_1")));
    CHECK(is_refused(with("id", "ptk_" + std::string(64, 'a'))));
    CHECK(is_refused(with("digest", "AAAA")));
    CHECK(is_refused(with("digest", "not base64")));
    json twice = written();
    twice[kSession][1]["id"] = twice[kSession][0]["id"];
    CHECK(is_refused(twice));
}

}  // namespace
}  // namespace cellkeep::preview
