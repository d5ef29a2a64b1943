// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/asking/questions.hpp"
#include "kernel-manager/mcp/asking/state_seal.hpp"
#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/wire/capabilities.hpp"
#include "kernel-manager/mcp/wire/log_level.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::mcp {
namespace {

using std::chrono::milliseconds;

const StateSeal::Time kSealedAt{std::chrono::seconds(1'000'000)};

Message reply_to(const nlohmann::json& id, nlohmann::json response) {
    Message message;
    message.kind = MessageKind::kResponse;
    message.id = id;
    message.response = std::move(response);
    return message;
}

TEST_CASE("a request's memory comes back as it was, for a while", "[mcp][asking]") {
    StateSeal seal;
    const nlohmann::json memory = {{"round", 2}, {"text", "ä\n"}};
    const auto sealed = seal.seal("subject", memory, kSealedAt);
    REQUIRE(sealed.has_value());
    CHECK(seal.open(sealed.value(), "subject", kSealedAt).value() == memory);
    const auto last = kSealedAt + kRequestStateLife;
    CHECK(seal.open(sealed.value(), "subject", last).has_value());
    CHECK(
        seal.open(sealed.value(), "subject", last + milliseconds(1)).error().code() ==
        ErrorCode::kPermissionDenied);
}

TEST_CASE("a memory that was changed, or is another's, is refused", "[mcp][asking]") {
    StateSeal seal;
    StateSeal other;
    const std::string sealed = seal.seal("subject", {{"round", 1}}, kSealedAt).value();
    const std::string foreign = other.seal("subject", {{"round", 1}}, kSealedAt).value();
    const std::string next = seal.seal("subject", {{"round", 2}}, kSealedAt).value();
    const std::size_t dot = sealed.find('.');
    std::string changed = sealed;
    changed[0] = changed[0] == 'a' ? 'b' : 'a';
    for (const std::string& wrong :
         {std::string(),
          std::string("."),
          sealed + "-TAMPERED",
          sealed.substr(0, dot),
          sealed.substr(0, dot + 1),
          sealed.substr(0, sealed.size() - 1),
          sealed.substr(0, dot) + next.substr(next.find('.')),
          changed,
          foreign}) {
        CAPTURE(wrong);
        CHECK(seal.open(wrong, "subject", kSealedAt).has_error());
    }
    CHECK(seal.open(sealed, "another", kSealedAt).has_error());
    CHECK(StateSeal().open(sealed, "subject", kSealedAt).has_error());
    CHECK(seal.open(sealed, "subject", kSealedAt).has_value());
}

TEST_CASE("a memory has at most kRequestStateBytesMax", "[mcp][asking]") {
    StateSeal seal;
    const auto size_of = [&](std::size_t text) {
        return seal.seal("s", std::string(text, 'x'), kSealedAt);
    };
    std::size_t fits = kRequestStateBytesMax / 2;
    for (std::size_t step = fits / 2; step > 0; step /= 2) {
        fits += size_of(fits + step).has_value() ? step : 0;
    }
    const auto longest = size_of(fits);
    REQUIRE(longest.has_value());
    CHECK(longest.value().size() > kRequestStateBytesMax - 8);
    CHECK(longest.value().size() <= kRequestStateBytesMax);
    CHECK(size_of(fits + 4).error().code() == ErrorCode::kLimitExceeded);
    CHECK(seal.open(longest.value(), "s", kSealedAt).has_value());
}

TEST_CASE("a question is answered once, by its id", "[mcp][asking]") {
    boost::asio::io_context io;
    Questions questions(io);
    const auto first = questions.add().value();
    const auto second = questions.add().value();
    CHECK(first.id != second.id);
    for (const nlohmann::json& id :
         {nlohmann::json(), nlohmann::json(1), nlohmann::json("ask_9"), nlohmann::json("")}) {
        CHECK_FALSE(questions.deliver(reply_to(id, {{"result", nlohmann::json::object()}})));
    }
    CHECK(questions.deliver(reply_to(first.id, {{"result", {{"action", "accept"}}}})));
    CHECK(first.reply->value().value()["action"] == "accept");
    CHECK_FALSE(questions.deliver(reply_to(first.id, {{"result", {{"action", "decline"}}}})));
    CHECK_FALSE(second.reply->done());
    questions.close();
    CHECK(second.reply->value().error().code() == ErrorCode::kCancelled);
    CHECK(questions.add().has_error());
}

TEST_CASE("what is no result of a client is an error", "[mcp][asking]") {
    boost::asio::io_context io;
    Questions questions(io);
    for (const nlohmann::json& response :
         {nlohmann::json{{"error", {{"code", -1}, {"message", "no user here"}}}},
          nlohmann::json{{"error", "text"}},
          nlohmann::json{{"error", {{"message", 5}}}},
          nlohmann::json{{"result", nullptr}},
          nlohmann::json{{"result", nlohmann::json::array()}}}) {
        CAPTURE(response);
        const auto question = questions.add().value();
        CHECK(questions.deliver(reply_to(question.id, response)));
        CHECK(question.reply->value().error().code() == ErrorCode::kProtocol);
    }
}

TEST_CASE("a client has at most kQuestionsMax questions", "[mcp][asking]") {
    boost::asio::io_context io;
    Questions questions(io);
    std::string last;
    for (std::size_t i = 0; i < kQuestionsMax; ++i) {
        const auto added = questions.add();
        REQUIRE(added.has_value());
        last = added.value().id;
    }
    CHECK(questions.add().error().code() == ErrorCode::kLimitExceeded);
    questions.forget(last);
    CHECK(questions.add().has_value());
    CHECK(questions.size() == kQuestionsMax);
}

TEST_CASE("what a client can be asked is what it declares", "[mcp][asking]") {
    const auto can = [](const nlohmann::json& declared, const char* method) {
        return read_capabilities(declared).answers(method);
    };
    const nlohmann::json object = nlohmann::json::object();
    CHECK(can({{"elicitation", object}}, "elicitation/create"));
    CHECK(can({{"elicitation", {{"form", object}, {"url", object}}}}, "elicitation/create"));
    CHECK(can({{"sampling", object}}, "sampling/createMessage"));
    CHECK(can({{"roots", object}}, "roots/list"));
    for (const nlohmann::json& declared :
         {nlohmann::json(),
          object,
          nlohmann::json::array(),
          nlohmann::json{{"elicitation", true}},
          nlohmann::json{{"elicitation", nullptr}},
          nlohmann::json{{"elicitation", {{"url", object}}}},
          nlohmann::json{{"sampling", object}}}) {
        CAPTURE(declared);
        CHECK_FALSE(can(declared, "elicitation/create"));
    }
    CHECK_FALSE(can({{"sampling", object}, {"roots", object}}, "tools/call"));
    CHECK_FALSE(can({{"sampling", object}}, ""));
}

TEST_CASE("log levels are those of RFC 5424", "[mcp][asking]") {
    CHECK(parse_log_level("debug") == LogLevel::kDebug);
    CHECK(parse_log_level("emergency") == LogLevel::kEmergency);
    CHECK(LogLevel::kInfo < LogLevel::kWarning);
    CHECK(to_string(LogLevel::kNotice) == "notice");
    for (const char* wrong : {"", "warn", "Info", "trace", "debug "}) {
        CHECK_FALSE(parse_log_level(wrong));
    }
}

}  // namespace
}  // namespace cellkeep::mcp
