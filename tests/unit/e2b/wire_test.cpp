// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/connect_stream.hpp"
#include "kernel-manager/e2b/wire/fields.hpp"
#include "kernel-manager/e2b/wire/sandbox_place.hpp"
#include "kernel-manager/e2b/wire/sandbox_tokens.hpp"
#include "kernel-manager/http/access/auth.hpp"
#include "protocol/base64.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::e2b {
namespace {

const std::string kDigits = "0123456789abcdef01234567";

std::string enveloped(char flags, std::size_t length, const std::string& text) {
    std::string framed(1, flags);
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        framed += static_cast<char>((length >> shift) & 0xFFU);
    }
    return framed + text;
}

SandboxTokens made_tokens() {
    auto tokens = SandboxTokens::create();
    REQUIRE(tokens.has_value());
    return tokens.value();
}

/// As E2B's clients sign: what stands before the token of "ses_a", and the token.
std::string signed_as(const std::string& text, const SandboxTokens& tokens) {
    const http::TokenDigest digest =
        http::digest_of_token(text + tokens.token(SandboxTokens::Use::kEnvd, "ses_a"));
    std::string encoded = protocol::encode_base64(
        std::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
    encoded.erase(encoded.find_last_not_of('=') + 1);
    return "v1_" + encoded;
}

http::Request request_for(const std::string& host, const std::string& path) {
    http::Request request;
    auto target = http::parse_target(path);
    REQUIRE(target.has_value());
    request.target = target.value();
    request.headers.add("Host", host);
    return request;
}

TEST_CASE("a sandbox is its session under another name", "[e2b][place]") {
    CHECK(session_id_of(kDigits) == "ses_" + kDigits);
    CHECK(session_id_of("ses_" + kDigits) == "ses_" + kDigits);
    CHECK(sandbox_id_of("ses_" + kDigits) == kDigits);
    for (const std::string& wrong :
         {std::string(),
          std::string("ses_"),
          kDigits + "0",
          kDigits.substr(1),
          "SES_" + kDigits,
          "ses_ses_" + kDigits,
          std::string("0123456789ABCDEF01234567"),
          kDigits.substr(1) + "/",
          kDigits.substr(1) + ".",
          std::string("debug_sandbox_id")}) {
        CAPTURE(wrong);
        CHECK_FALSE(session_id_of(wrong));
    }
}

TEST_CASE("a host or two headers give a request its place", "[e2b][place]") {
    auto by_host = request_for("49999-" + kDigits + ".localhost:8888", "/execute");
    REQUIRE(enter_by_host(by_host));
    CHECK(by_host.target.segments == std::vector<std::string>{"e2b", kDigits, "49999", "execute"});
    for (const std::string& host :
         {std::string("localhost"),
          "49999-" + kDigits,
          "-" + kDigits + ".localhost",
          "0-" + kDigits + ".localhost",
          "65536-" + kDigits + ".localhost",
          std::string("49999-short.localhost"),
          "49999-" + kDigits + "-x.localhost"}) {
        CAPTURE(host);
        auto other = request_for(host, "/v1/sessions");
        CHECK_FALSE(enter_by_host(other));
        CHECK(other.target.segments == std::vector<std::string>{"v1", "sessions"});
    }
    auto by_header = request_for("localhost", "/files");
    by_header.headers.add("e2b-sandbox-id", kDigits);
    enter_by_header(by_header);
    CHECK(by_header.target.segments.size() == 1);
    by_header.headers.add("E2B-Sandbox-Port", "x49983");
    enter_by_header(by_header);
    CHECK(by_header.target.segments == std::vector<std::string>{"e2b", kDigits, "0", "files"});
}

TEST_CASE("no token fits another sandbox or another use", "[e2b][tokens]") {
    using Use = SandboxTokens::Use;
    const SandboxTokens tokens = made_tokens();
    const std::string token = tokens.token(Use::kEnvd, "ses_a");
    CHECK(token.size() == 64);
    CHECK(tokens.fits(Use::kEnvd, "ses_a", token));
    CHECK_FALSE(tokens.fits(Use::kEnvd, "ses_b", token));
    CHECK_FALSE(tokens.fits(Use::kTraffic, "ses_a", token));
    CHECK_FALSE(tokens.fits(Use::kEnvd, "ses_a", token.substr(1)));
    CHECK_FALSE(tokens.fits(Use::kEnvd, "ses_a", token + "0"));
    CHECK_FALSE(tokens.fits(Use::kEnvd, "ses_a", ""));
    CHECK_FALSE(made_tokens().fits(Use::kEnvd, "ses_a", token));
}

TEST_CASE("a signature is for one path, use and time", "[e2b][tokens]") {
    using Verdict = SandboxTokens::Verdict;
    const SandboxTokens tokens = made_tokens();
    const auto now = std::chrono::system_clock::time_point(std::chrono::seconds(1000));
    SandboxTokens::SignedUse use{"a", "read", "", "v1_x", {}};
    CHECK(tokens.check("ses_a", use, now) == Verdict::kWrong);
    CHECK(tokens.check("ses_a", {}, now) == Verdict::kWrong);
    use.user = "user";
    use.signature = signed_as("a:read:user:", tokens);
    CHECK(tokens.check("ses_a", use, now) == Verdict::kFits);
    CHECK(tokens.check("ses_b", use, now) == Verdict::kWrong);
    use.path = "a:b:c";
    CHECK(tokens.check("ses_a", use, now) == Verdict::kWrong);
    use.signature = signed_as("a:b:c:read:user:", tokens);
    CHECK(tokens.check("ses_a", use, now) == Verdict::kFits);
    use.expiration = "999";
    CHECK(tokens.check("ses_a", use, now) == Verdict::kWrong);
}

TEST_CASE("no user's name turns a signature into one for another file or use", "[e2b][tokens]") {
    using Verdict = SandboxTokens::Verdict;
    const SandboxTokens tokens = made_tokens();
    const auto now = std::chrono::system_clock::time_point(std::chrono::seconds(1000));
    // One text each, and two ways to cut it.
    const std::string reads = signed_as("v:write:x:read:user:", tokens);
    CHECK(tokens.check("ses_a", {"v:write:x", "read", "user", reads, {}}, now) == Verdict::kFits);
    CHECK(tokens.check("ses_a", {"v", "write", "x:read:user", reads, {}}, now) == Verdict::kWrong);
    const std::string writes = signed_as("v:read:x:write:user:", tokens);
    CHECK(tokens.check("ses_a", {"v:read:x", "write", "user", writes, {}}, now) == Verdict::kFits);
    CHECK(tokens.check("ses_a", {"v", "read", "x:write:user", writes, {}}, now) == Verdict::kWrong);
    for (const std::string& user :
         {std::string(":"),
          std::string("a b"),
          std::string("a\0b", 3),
          std::string("a/b"),
          std::string(kUserBytesMax + 1, 'a')}) {
        CAPTURE(user);
        const std::string own = signed_as("v:read:" + user + ":", tokens);
        CHECK(tokens.check("ses_a", {"v", "read", user, own, {}}, now) == Verdict::kWrong);
    }
    for (const std::string& user : {std::string(), std::string("root"), std::string("a_B-9.c")}) {
        CAPTURE(user);
        const std::string own = signed_as("v:read:" + user + ":", tokens);
        CHECK(tokens.check("ses_a", {"v", "read", user, own, {}}, now) == Verdict::kFits);
    }
}

TEST_CASE("messages are cut out of a stream however it comes", "[e2b][connect]") {
    const std::string framed =
        enveloped(0, 7, R"({"a":1})") + enveloped(0, 7, R"({"a":2})") + enveloped(2, 2, "{}");
    for (const std::size_t step : {std::size_t(1), std::size_t(3), framed.size()}) {
        ConnectReader reader;
        std::vector<int> seen;
        for (std::size_t at = 0; at < framed.size(); at += step) {
            REQUIRE(reader.append(framed.substr(at, step)).has_value());
            for (auto next = reader.next(); next.has_value() && next.value();
                 next = reader.next()) {
                seen.push_back(next.value()->at("a").get<int>());
            }
        }
        CHECK(seen == std::vector<int>{1, 2});
        CHECK(reader.is_clean());
    }
}

TEST_CASE("envelopes that lie are refused", "[e2b][connect]") {
    const std::string text = R"({"a":1})";
    CHECK(read_only_message(enveloped(0, 7, text)).value().at("a") == 1);
    for (const std::string& wrong :
         {std::string(),
          std::string(4, '\0'),
          enveloped(0, 8, text),
          enveloped(0, 6, text),
          enveloped(0, kMessageBytesMax + 1, text),
          enveloped(1, 7, text),
          enveloped(3, 7, text),
          enveloped(2, 7, text),
          enveloped(0, 2, "[]"),
          enveloped(0, 1, "{"),
          enveloped(0, 0, ""),
          enveloped(0, 7, text) + enveloped(0, 7, text),
          enveloped(0, 7, text) + "x"}) {
        CAPTURE(wrong);
        CHECK(read_only_message(wrong).has_error());
    }
    ConnectReader reader;
    CHECK(reader.append(enveloped(0, kMessageBytesMax, "")).has_value());
    CHECK(ConnectReader().append(enveloped(0, kMessageBytesMax + 1, "")).has_error());
}

TEST_CASE("a stream's messages have its own bound", "[e2b][connect]") {
    ConnectReader reader(7);
    CHECK(reader.awaited() == 0);
    REQUIRE(reader.append(enveloped(0, 7, R"({"a")")).has_value());
    CHECK(reader.awaited() == 12);
    CHECK_FALSE(reader.next().value());
    REQUIRE(reader.append(":1}" + enveloped(0, 2, "{").substr(0, 3)).has_value());
    CHECK(reader.next().value()->at("a") == 1);
    CHECK(reader.awaited() == 3);
    CHECK_FALSE(reader.is_clean());
    const Status large = ConnectReader(7).append(enveloped(0, 8, ""));
    CHECK(large.error().code() == ErrorCode::kLimitExceeded);
    CHECK(ConnectReader(7).append(enveloped(0, 7, "")).has_value());
    // All that a command takes at once fits, and not much more.
    CHECK(kInputMessageBytesMax > process::kInputBytesMax / 3 * 4);
    CHECK(kInputMessageBytesMax < 2 * process::kInputBytesMax);
}

TEST_CASE("an answer's messages are framed", "[e2b][connect]") {
    CHECK(frame_message({{"a", 1}}) == enveloped(0, 7, R"({"a":1})"));
    CHECK(frame_end() == enveloped(2, 2, "{}"));
    const std::string failed = frame_end("not_found", "gone");
    CHECK(failed.substr(5) == R"({"error":{"code":"not_found","message":"gone"}})");
}

TEST_CASE("members are read strictly, unknown ones let through", "[e2b][fields]") {
    const auto body = nlohmann::json::parse(
        R"({"n":300.0,"t":"x","b":true,"null":null,"o":{"k":"v"},"other":[1]})");
    Fields fields(body);
    CHECK(fields.integer("n", 0, 300) == 300);
    CHECK(fields.text("t", 1) == "x");
    CHECK(fields.boolean("b") == true);
    CHECK_FALSE(fields.text("null", 1));
    CHECK(fields.texts("o", 1, 2).at("k") == "v");
    CHECK(fields.good());
    const auto refuses = [&body](auto read) {
        Fields own(body);
        read(own);
        return !own.good() && own.error().code() == ErrorCode::kInvalidArgument;
    };
    CHECK(refuses([](Fields& f) { f.integer("n", 0, 299); }));
    CHECK(refuses([](Fields& f) { f.integer("n", 301, 400); }));
    CHECK(refuses([](Fields& f) { f.integer("t", 0, 9); }));
    CHECK(refuses([](Fields& f) { f.text("n", 9); }));
    CHECK(refuses([](Fields& f) { f.text("t", 0); }));
    CHECK(refuses([](Fields& f) { f.boolean("t"); }));
    CHECK(refuses([](Fields& f) { f.object("t"); }));
    CHECK(refuses([](Fields& f) { f.array("o"); }));
    CHECK(refuses([](Fields& f) { f.texts("o", 0, 2); }));
    CHECK(refuses([](Fields& f) { f.texts("o", 1, 1); }));
    CHECK(refuses([](Fields& f) { f.texts("other", 1, 1); }));
    const nlohmann::json list = nlohmann::json::array();
    CHECK_FALSE(Fields(list).good());
}

}  // namespace
}  // namespace cellkeep::e2b
