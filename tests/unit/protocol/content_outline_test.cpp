// SPDX-License-Identifier: Apache-2.0
#include "protocol/content_outline.hpp"

#include "protocol/limits.hpp"
#include "protocol/message.hpp"

#include <catch2/catch.hpp>

#include <string>

using cellkeep::protocol::Channel;
using cellkeep::protocol::ContentOutline;
using cellkeep::protocol::ContentScan;
using cellkeep::protocol::Member;
using cellkeep::protocol::Message;
using cellkeep::protocol::outline_of;

namespace {

Message with_content(std::string_view content) {
    return Message::create({.channel = Channel::kIopub,
                            .header = R"({"msg_id":"m","msg_type":"display_data"})",
                            .content = content,
                            .buffers = {}})
        .value();
}

}  // namespace

TEST_CASE("the members that matter are found where they lie", "[protocol][outline]") {
    const std::string content =
        R"({"data":{"text/plain":"x","name":"inner"}, "metadata" : {} ,"transient":{"a":1,"display_id":"d1"},)"
        R"("name":"stderr","text":"t","ename":"E","evalue":"v","traceback":["a","b"],"execution_count":3,)"
        R"("execution_state":"idle","status":"ok","wait":true,"stop_on_error":false,"other":[1,2]})";
    ContentScan scan;
    while (!scan.advance(content, 5)) {
    }
    const ContentOutline outline = scan.outline();
    CHECK(outline.valid);
    CHECK(outline.plain_traceback);
    const auto find = [&](Member member) { return outline.find(member, content); };
    CHECK(find(Member::kData) == R"({"text/plain":"x","name":"inner"})");
    CHECK(find(Member::kMetadata) == "{}");
    CHECK(find(Member::kDisplayId) == R"("d1")");
    CHECK(find(Member::kName) == R"("stderr")");
    CHECK(find(Member::kText) == R"("t")");
    CHECK(find(Member::kEname) == R"("E")");
    CHECK(find(Member::kEvalue) == R"("v")");
    CHECK(find(Member::kTraceback) == R"(["a","b"])");
    CHECK(find(Member::kExecutionCount) == "3");
    CHECK(find(Member::kExecutionState) == R"("idle")");
    CHECK(find(Member::kStatus) == R"("ok")");
    CHECK(find(Member::kWait) == "true");
    CHECK(find(Member::kStopOnError) == "false");
}

TEST_CASE("keys in escapes are the same keys, and of two the last counts", "[protocol][outline]") {
    const std::string escaped = R"({"d\u0061ta":{"a":1},"\u006eame":"n"})";
    CHECK(outline_of(escaped).find(Member::kData, escaped) == R"({"a":1})");
    CHECK(outline_of(escaped).find(Member::kName, escaped) == R"("n")");
    const std::string twice =
        R"({"data":1,"transient":{"display_id":"a"},"data":2,"transient":{}})";
    CHECK(outline_of(twice).find(Member::kData, twice) == "2");
    CHECK(outline_of(twice).find(Member::kDisplayId, twice).empty());
}

TEST_CASE("what is not an object, or somewhere else, is not found", "[protocol][outline]") {
    for (const char* content :
         {"",
          "null",
          "[{\"data\":1}]",
          "\"data\"",
          "{\"data\":1",
          "{\"data\":1}}",
          "{\"data\":NaN}",
          "{\"data\":\"\xFF\"}"}) {
        CAPTURE(content);
        CHECK_FALSE(outline_of(content).valid);
        CHECK(outline_of(content).find(Member::kData, content).empty());
    }
    for (const char* content :
         {R"({"x":{"data":1}})",
          R"({"Data":1})",
          R"({"data ":1})",
          R"({"x":{"display_id":"d"}})",
          R"({"transient":[{"display_id":"d"}]})",
          R"({"transient":{"x":{"display_id":"d"}}})",
          R"({"display_id":"d"})"}) {
        CAPTURE(content);
        CHECK(outline_of(content).valid);
        CHECK(outline_of(content).find(Member::kData, content).empty());
        CHECK(outline_of(content).find(Member::kDisplayId, content).empty());
    }
    for (const char* content :
         {R"({"traceback":["a",1]})",
          R"({"traceback":[["a"]]})",
          R"({"traceback":"a"})",
          R"({"traceback":{"a":"b"}})",
          R"({"traceback":["a"],"traceback":null})"}) {
        CAPTURE(content);
        CHECK_FALSE(outline_of(content).plain_traceback);
    }
    CHECK(outline_of(R"({"x":[1],"traceback":[]})").plain_traceback);
}

TEST_CASE("a message's members are its own bytes", "[protocol][outline][message]") {
    const Message message = with_content(R"({"data":{"k":1}})");
    const auto data = message.member(Member::kData);
    CHECK(data.text() == R"({"k":1})");
    CHECK(data.text().data() >= message.frame().data());
    CHECK(data.text().data() < message.frame().data() + message.frame().size());
    CHECK(data.held_bytes() >= message.frame().size());
    CHECK(message.has_valid_metadata());
    CHECK(message.member(Member::kName).is_null());
    CHECK(with_content("[1]").member(Member::kData).is_null());
}

TEST_CASE("line ends between tokens do not reach what is spliced", "[protocol][outline][message]") {
    const auto data = with_content("{\"data\":\r\n{\"k\":\n[1,\r2]}}").member(Member::kData);
    CHECK(data.text() == "{\"k\": [1, 2]}");
}

TEST_CASE("what was scanned before is taken as it was found", "[protocol][outline][message]") {
    const Message plain = with_content(R"({"data":{"k":1}})");
    const auto scanned = Message::from_scanned_frame(
        std::string(plain.frame()), outline_of(plain.content_json()), /*metadata_valid=*/false);
    REQUIRE(scanned.has_value());
    CHECK(scanned.value().member(Member::kData).text() == R"({"k":1})");
    CHECK_FALSE(scanned.value().has_valid_metadata());
    CHECK(Message::from_scanned_frame("x", {}, true).has_error());
}
