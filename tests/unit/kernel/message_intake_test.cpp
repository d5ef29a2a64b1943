// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/link/message_intake.hpp"

#include "protocol/frame.hpp"
#include "protocol/json.hpp"
#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string>
#include <vector>

using cellkeep::protocol::Member;
using cellkeep::protocol::Message;
using cellkeep::session::MessageIntake;
using nlohmann::json;
namespace limits = cellkeep::limits;

namespace {

std::string frame(
    const std::string& type,
    std::string_view content,
    std::string_view metadata = "{}",
    std::string_view buffer = "b") {
    const std::string header =
        json{{"msg_id", "m1"}, {"session", "s"}, {"msg_type", type}, {"version", "5.5"}}.dump();
    const std::vector<std::string_view> parts{
        "iopub", header, R"({"msg_id":"parent"})", metadata, content, buffer};
    return cellkeep::protocol::encode_frame(parts).value();
}

struct Taken {
    std::vector<Message> messages;
    std::size_t most_at_once = 0;  // bytes of one advance()
};

Taken take_all(MessageIntake& intake, std::size_t slice) {
    Taken taken;
    while (intake.busy()) {
        auto progress = intake.advance(slice);
        REQUIRE(progress.has_value());
        taken.most_at_once = std::max(taken.most_at_once, progress.value().bytes);
        if (progress.value().message) {
            taken.messages.push_back(*progress.value().message);
        }
    }
    return taken;
}

Taken take(const std::string& bytes, std::size_t slice = 64) {
    MessageIntake intake;
    REQUIRE(intake.begin(bytes).has_value());
    return take_all(intake, slice);
}

}  // namespace

TEST_CASE("a message comes out as it went in, in slices", "[session][intake]") {
    const std::string content = R"({"data":{"text/plain":")" + std::string(10'000, 'x') + R"("}})";
    const std::string bytes = frame("display_data", content, R"({"k":[1]})");
    for (const std::size_t slice : {std::size_t{1}, std::size_t{100}, limits::kFrameBytesMax}) {
        const Taken taken = take(bytes, slice);
        REQUIRE(taken.messages.size() == 1);
        CHECK(taken.messages[0].frame() == bytes);
        CHECK(taken.messages[0].outline().valid);
        CHECK(taken.messages[0].has_valid_metadata());
        CHECK(taken.messages[0].member(Member::kData).text() == content.substr(8, 10'017));
        CHECK(taken.most_at_once <= std::max(slice, content.size() + 100) + 16);
    }
    CHECK(take(bytes, 100).most_at_once <= 100 + 16);
}

TEST_CASE("line ends between tokens become spaces, nothing else changes", "[session][intake]") {
    const Taken taken =
        take(frame("display_data", "{\"data\":\r\n{\"a\\n\":[1,\n2]}}\n", "{\n}"), 3);
    REQUIRE(taken.messages.size() == 1);
    CHECK(taken.messages[0].content_json() == "{\"data\":  {\"a\\n\":[1, 2]}} ");
    CHECK(taken.messages[0].metadata_json() == "{ }");
    CHECK(taken.messages[0].member(Member::kData).text() == "{\"a\\n\":[1, 2]}");
}

TEST_CASE("a content that is no JSON object is passed on as it came", "[session][intake]") {
    for (const char* content :
         {"", "[1]", "null", "{\"data\":NaN}", "{\"data\":", "\xFF", "{} {}"}) {
        CAPTURE(content);
        const Taken taken = take(frame("display_data", content));
        REQUIRE(taken.messages.size() == 1);
        CHECK(taken.messages[0].content_json() == content);
        CHECK_FALSE(taken.messages[0].outline().valid);
        CHECK(taken.messages[0].member(Member::kData).is_null());
    }
    const Taken taken = take(frame("display_data", "{}", "[1,2"));
    CHECK_FALSE(taken.messages[0].has_valid_metadata());
    CHECK(taken.messages[0].outline().valid);
}

TEST_CASE("what is no frame, or has no header, is refused", "[session][intake]") {
    MessageIntake intake;
    for (const std::string& bytes : {std::string(), std::string("x"), std::string(48, '\xff')}) {
        CHECK(intake.begin(bytes).has_error());
        CHECK_FALSE(intake.busy());
    }
    const std::vector<std::string_view> parts{"iopub", "{}", "{}", "{}", "{}"};
    REQUIRE(intake.begin(cellkeep::protocol::encode_frame(parts).value()).has_value());
    CHECK(intake.advance(1000).has_error());
    CHECK_FALSE(intake.busy());
    const std::vector<std::string_view> channel{
        "nowhere", R"({"msg_id":"a","msg_type":"b"})", "{}", "{}", "{}"};
    REQUIRE(intake.begin(cellkeep::protocol::encode_frame(channel).value()).has_value());
    CHECK(intake.advance(1000).has_error());
}

TEST_CASE(
    "limits::kStreamMessageBytesMax is the longest stream text of one message",
    "[session][intake][limits]") {
    const auto stream = [](const std::string& inside) {
        return frame("stream", R"({"name":"stderr","text":")" + inside + R"("})");
    };
    const std::size_t most = limits::kStreamMessageBytesMax;
    CHECK(take(stream(std::string(most, 'x')), most).messages.size() == 1);
    CHECK(take(stream(std::string(most + 1, 'x')), most).messages.size() == 2);

    // Every byte and escape arrives, and no cut is inside a character.
    std::string inside;
    while (inside.size() < 3 * most) {
        inside += R"(é😀\n\ud83d\ude00\\x)";
    }
    const std::string whole = json::parse('"' + inside + '"');
    const Taken taken = take(stream(inside), most);
    CHECK(taken.messages.size() == 4);
    CHECK(taken.most_at_once <= most + 16);
    std::string joined;
    std::set<std::string> ids;
    for (const Message& piece : taken.messages) {
        const auto content = piece.parse_content();
        REQUIRE(content.has_value());
        joined += content.value()["text"].get<std::string>();
        CHECK(content.value()["name"] == "stderr");
        CHECK(piece.header().msg_type == "stream");
        CHECK(piece.header().session == "s");
        CHECK(piece.parent().msg_id == "parent");
        ids.insert(piece.header().msg_id);
    }
    CHECK((joined == whole));
    CHECK(ids.size() == taken.messages.size());
}

TEST_CASE("pieces repeat no long name and no long metadata", "[session][intake]") {
    const std::string text(3 * limits::kStreamMessageBytesMax, 'x');
    const auto content = [&](std::size_t name_bytes) {
        return R"({"name":")" + std::string(name_bytes, 'n') + R"(","text":")" + text + R"("})";
    };
    const auto metadata = [](std::size_t bytes) {
        return R"({"k":")" + std::string(bytes - 8, 'm') + R"("})";
    };
    const std::size_t most = limits::kReplyMetadataBytesMax;
    const Taken kept = take(frame("stream", content(62), metadata(most)), 1 << 20);
    REQUIRE(kept.messages.size() == 3);
    CHECK(kept.messages[2].metadata_json().size() == most);
    CHECK(kept.messages[2].member(Member::kName).text().size() == 64);
    const Taken left = take(frame("stream", content(63), metadata(most + 1)), 1 << 20);
    REQUIRE(left.messages.size() == 3);
    for (const Message& piece : left.messages) {
        CHECK(piece.metadata_json() == "{}");
        CHECK(piece.member(Member::kName).text() == R"("stdout")");
    }
}

TEST_CASE("only stream text is cut", "[session][intake]") {
    const std::string long_text(limits::kStreamMessageBytesMax + 1, 'x');
    CHECK(
        take(frame("display_data", R"({"text":")" + long_text + R"("})"), 1 << 20)
            .messages.size() == 1);
    CHECK(
        take(frame("stream", R"({"other":")" + long_text + R"("})"), 1 << 20).messages.size() == 1);
    CHECK(
        take(frame("stream", R"({"text":[")" + long_text + R"("]})"), 1 << 20).messages.size() ==
        1);
}

TEST_CASE("a message for which there is no time is passed on unread", "[session][intake]") {
    MessageIntake intake;
    CHECK(intake.unscanned() == 0);
    const std::string content = R"({"data":{"k":1}})";
    REQUIRE(intake.begin(frame("display_data", content)).has_value());
    CHECK(intake.unscanned() == content.size() + 2);  // and the metadata
    REQUIRE(intake.advance(5).has_value());
    CHECK(intake.unscanned() == content.size() + 2 - 5);
    const auto message = intake.pass_unscanned();
    REQUIRE(message.has_value());
    CHECK(message.value().content_json() == content);
    CHECK_FALSE(message.value().outline().valid);
    CHECK_FALSE(intake.busy());
    CHECK(intake.unscanned() == 0);
}
