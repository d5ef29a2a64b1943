// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/output/stream_joiner.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

using nlohmann::json;
using protocol::Channel;
using protocol::Message;

namespace {

struct StreamParts {
    std::string content = R"({"name":"stdout","text":"x"})";
    std::string parent = "{}";
    std::string metadata = "{}";
    std::string type = "stream";
    std::string session = "kernel";
    std::vector<std::string_view> buffers = {};
};

Message make_stream(const StreamParts& parts) {
    const std::string header =
        protocol::to_json_text(protocol::make_header(parts.type, parts.session, "user"));
    return Message::create({.channel = Channel::kIopub,
                            .header = header,
                            .parent_header = parts.parent,
                            .metadata = parts.metadata,
                            .content = parts.content,
                            .buffers = parts.buffers})
        .value();
}

std::string stdout_of(const std::string& inside) {
    return R"({"name":"stdout","text":")" + inside + R"("})";
}

constexpr auto kParent = R"({"msg_id":"1","msg_type":"execute_request"})";

}  // namespace

TEST_CASE("nothing is held before the first message", "[output][joiner]") {
    StreamJoiner joiner;
    CHECK(joiner.empty());
    CHECK_FALSE(joiner.take().has_value());
}

TEST_CASE("one message that was held is the one that came", "[output][joiner]") {
    StreamJoiner joiner;
    const Message only = make_stream({});
    joiner.hold(only);
    CHECK_FALSE(joiner.empty());
    CHECK(joiner.take()->frame() == only.frame());
    CHECK(joiner.empty());
}

TEST_CASE("texts become one text, bytes as they came", "[output][joiner]") {
    StreamJoiner joiner;
    const Message first = make_stream({.content = stdout_of("a\\n"), .parent = kParent});
    joiner.hold(first);
    for (const char* inside : {"", "\\u00e9\\\"", "\xc3\xa9 \\\\"}) {
        const Message next = make_stream({.content = stdout_of(inside), .parent = kParent});
        REQUIRE(StreamJoiner::is_joinable(next));
        REQUIRE(joiner.accepts(next));
        joiner.hold(next);
    }
    const Message joined = joiner.take().value();
    CHECK(joined.content_json() == stdout_of("a\\n\\u00e9\\\"\xc3\xa9 \\\\"));
    CHECK(joined.header_json() == first.header_json());
    CHECK(joined.parent_header_json() == kParent);
    CHECK(joined.has_valid_metadata());
    // The outline that comes with it is the one that a scan finds.
    const auto outline = protocol::outline_of(joined.content_json());
    CHECK(outline.valid == joined.outline().valid);
    for (const auto member : {protocol::Member::kName, protocol::Member::kText}) {
        CHECK(
            joined.outline().find(member, joined.content_json()) ==
            outline.find(member, joined.content_json()));
    }
    CHECK(joined.parse_content().value()["text"] == "a\n\xc3\xa9\"\xc3\xa9 \\");
    CHECK(joiner.empty());
}

TEST_CASE("empty texts are joined to nothing", "[output][joiner]") {
    StreamJoiner joiner;
    joiner.hold(make_stream({.content = stdout_of("")}));
    joiner.hold(make_stream({.content = stdout_of("")}));
    CHECK(joiner.take()->content_json() == stdout_of(""));
}

TEST_CASE("messages of another form are not held", "[output][joiner]") {
    CHECK(StreamJoiner::is_joinable(make_stream({})));
    CHECK(StreamJoiner::is_joinable(make_stream({.content = R"({"name":"stderr","text":""})"})));
    CHECK_FALSE(StreamJoiner::is_joinable(make_stream({.type = "display_data"})));
    CHECK_FALSE(StreamJoiner::is_joinable(make_stream({.metadata = R"({"a":1})"})));
    CHECK_FALSE(StreamJoiner::is_joinable(make_stream({.buffers = {"x"}})));
    for (const char* content : {
             "{}",
             "not JSON",
             R"({"name":"stdout"})",
             R"({"text":"x"})",
             R"({"text":"x","name":"stdout"})",
             R"({"name":"stdlog","text":"x"})",
             R"({"name":"stdout","text":1})",
             R"({"name":"stdout","text":null})",
             R"({"name": "stdout","text":"x"})",
             R"({"name":"stdout","text":"x" })",
             R"({"name":"stdout","text":"x","more":1})",
             R"({"name":"stdout","text":"x","text":"y"})",
             R"({"name":"\u0073tdout","text":"x"})",
             R"({"name":"stdout","text":"x"}})",
         }) {
        CAPTURE(content);
        CHECK_FALSE(StreamJoiner::is_joinable(make_stream({.content = content})));
    }
}

TEST_CASE("what does not continue the held text is not accepted", "[output][joiner]") {
    StreamJoiner joiner;
    joiner.hold(make_stream({.parent = kParent}));
    CHECK(joiner.accepts(make_stream({.parent = kParent})));
    CHECK_FALSE(joiner.accepts(
        make_stream({.content = R"({"name":"stderr","text":"x"})", .parent = kParent})));
    CHECK_FALSE(joiner.accepts(make_stream({})));
    CHECK_FALSE(joiner.accepts(make_stream({.parent = kParent, .session = "other"})));
}

TEST_CASE("limits::kStreamMessageBytesMax of text are held, not a byte more", "[output][joiner]") {
    const std::size_t most = limits::kStreamMessageBytesMax;
    const Message one = make_stream({});
    const Message nearly = make_stream({.content = stdout_of(std::string(most - 1, 'x'))});
    const Message whole = make_stream({.content = stdout_of(std::string(most, 'x'))});
    CHECK_FALSE(StreamJoiner::is_joinable(whole));  // nothing would fit behind it
    REQUIRE(StreamJoiner::is_joinable(nearly));
    StreamJoiner joiner;
    joiner.hold(nearly);
    CHECK_FALSE(joiner.full());
    CHECK_FALSE(joiner.accepts(make_stream({.content = stdout_of("yy")})));
    REQUIRE(joiner.accepts(one));
    joiner.hold(one);
    CHECK(joiner.full());
    CHECK_FALSE(joiner.accepts(one));
    CHECK(joiner.accepts(make_stream({.content = stdout_of("")})));
    CHECK(joiner.take()->content_json() == stdout_of(std::string(most, 'x')));
    CHECK_FALSE(joiner.full());
}

}  // namespace cellkeep::session
