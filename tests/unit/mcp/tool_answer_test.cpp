// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/tool_answer.hpp"

#include "kernel-manager/mcp/limits.hpp"

#include <catch2/catch.hpp>

#include <string>

namespace cellkeep::mcp {
namespace {

TEST_CASE(
    "a text of kTextHeadBytes and kTextTailBytes is whole, a longer one is cut", "[mcp][answer]") {
    const std::string longest(kTextHeadBytes + kTextTailBytes, 'x');
    CHECK(show_text(longest).text == longest);
    CHECK(show_text(longest).omitted == 0);
    const ShownText cut = show_text("a" + longest + "z", "note");
    CHECK(cut.omitted == 2);
    CHECK(cut.text.starts_with("ax"));
    CHECK(cut.text.ends_with("xz"));
    CHECK(cut.text.find("[… 2 bytes omitted; note …]") != std::string::npos);
}

TEST_CASE("a text is cut between characters", "[mcp][answer]") {
    std::string text;
    while (text.size() < 3 * (kTextHeadBytes + kTextTailBytes)) {
        text += "\u20ac";
    }
    for (int shift = 0; shift < 3; ++shift) {
        const ShownText cut = show_text(text);
        const nlohmann::json value = cut.text;
        CHECK_NOTHROW(value.dump());  // throws for what is no UTF-8
        text.insert(0, "x");
    }
}

TEST_CASE("a refusal is an error with its state", "[mcp][answer]") {
    const auto value =
        to_json(refuse(Error(ErrorCode::kTimeout, "too slow", "wait"), State::kLost));
    CHECK(value["isError"] == true);
    CHECK(value["content"][0]["text"] == "timeout: too slow\nhint: wait\n[state lost]");
    CHECK(value["structuredContent"]["state"] == "lost");
    CHECK(value["structuredContent"]["error"]["kind"] == "timeout");
    CHECK(to_string(State::kRestored) == "restored");
}

TEST_CASE("a session that waits for its image says when to come again", "[mcp][answer]") {
    const auto kind = [](const Error& error) {
        return to_json(refuse_opening(error))["structuredContent"]["error"]["kind"];
    };
    CHECK(kind(Error::in_field(ErrorCode::kUnavailable, "environment", "wait")) == "preparing");
    CHECK(kind(Error(ErrorCode::kUnavailable, "no")) == "unavailable");
    CHECK(
        kind(Error::in_field(ErrorCode::kInvalidArgument, "environment", "no")) ==
        "invalid_argument");
}

TEST_CASE("the address of a file has its path in percent codes", "[mcp][answer]") {
    CHECK(file_uri("ses_1", "a/b c#?.txt") == "cellkeep://sessions/ses_1/files/a/b%20c%23%3F.txt");
    CHECK(file_uri("ses_1", "\xff") == "cellkeep://sessions/ses_1/files/%FF");
}

}  // namespace
}  // namespace cellkeep::mcp
