// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/channels/channels_framing.hpp"

#include "protocol/frame.hpp"
#include "protocol/json.hpp"
#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::jupyter::test {
namespace {

using nlohmann::json;
using protocol::Channel;
using protocol::Message;

const std::string kHeader = R"({"msg_id":"m","msg_type":"comm_msg","version":"5.0"})";

std::string v1(const std::vector<std::string_view>& parts) {
    return protocol::encode_frame(parts).value();
}

DecodedRequest accept(Framing framing, bool binary, std::string data) {
    return decode_request(framing, binary, std::move(data)).value();
}

DecodedRequest accept_text(const json& message) {
    return accept(Framing::kLegacy, false, message.dump());
}

ErrorCode refuse(Framing framing, bool binary, std::string data) {
    const auto decoded = decode_request(framing, binary, std::move(data));
    REQUIRE(decoded.has_error());
    CHECK_FALSE(decoded.error().message().empty());
    return decoded.error().code();
}

std::string number(std::uint32_t value) {
    std::string bytes;
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        bytes += static_cast<char>(value >> shift & 0xFFU);
    }
    return bytes;
}

std::string legacy_binary(const std::string& text, const std::vector<std::string>& buffers) {
    const auto count = static_cast<std::uint32_t>(buffers.size() + 1);
    auto offset = 4 * (count + 1);
    std::string table = number(count) + number(offset);
    offset += static_cast<std::uint32_t>(text.size());
    std::string rest = text;
    for (const std::string& buffer : buffers) {
        table += number(offset);
        offset += static_cast<std::uint32_t>(buffer.size());
        rest += buffer;
    }
    return table + rest;
}

std::string join(const OutgoingFrame& frame) {
    std::string all;
    for (const std::string_view piece : frame.pieces()) {
        all += piece;
    }
    return all;
}

Message with_buffers(std::vector<std::string_view> buffers, std::string_view content = "{}") {
    return Message::create({.channel = Channel::kIopub,
                            .header = kHeader,
                            .parent_header = R"({"msg_id":"p"})",
                            .metadata = R"({"a":1})",
                            .content = content,
                            .buffers = std::move(buffers)})
        .value();
}

TEST_CASE("a v1 message is taken as it is", "[channels][framing]") {
    const std::string frame = v1({"control", kHeader, "{}", "{}", R"({"x":1})", "buffer"});
    const DecodedRequest request = accept(Framing::kV1, true, frame);
    CHECK(request.problem.empty());
    CHECK(request.message.frame() == frame);
    CHECK(request.message.channel() == Channel::kControl);
}

TEST_CASE("parts that real clients leave out of a v1 message are added", "[channels][framing]") {
    const DecodedRequest request = accept(Framing::kV1, true, v1({"", kHeader, "", "null", ""}));
    CHECK(request.problem.empty());
    CHECK(request.message.channel() == Channel::kShell);
    CHECK(request.message.parent_header_json() == "{}");
    CHECK(request.message.metadata_json() == "{}");
    CHECK(request.message.content_json() == "{}");
}

TEST_CASE("a malformed v1 frame breaks the framing", "[channels][framing]") {
    const std::string good = v1({"shell", kHeader, "{}", "{}", "{}"});
    CHECK(refuse(Framing::kV1, true, "") == ErrorCode::kProtocol);
    CHECK(refuse(Framing::kV1, true, good.substr(0, 30)) == ErrorCode::kProtocol);
    CHECK(refuse(Framing::kV1, true, good + "x") == ErrorCode::kProtocol);
    CHECK(refuse(Framing::kV1, true, std::string(64, '\0')) == ErrorCode::kProtocol);
    CHECK(refuse(Framing::kV1, true, std::string(64, '\xff')) == ErrorCode::kProtocol);
    const std::string many = std::string(8, '\xff') + std::string(8 * limits::kBuffersMax, ' ');
    CHECK(refuse(Framing::kV1, true, many) == ErrorCode::kInvalidArgument);
    CHECK(refuse(Framing::kV1, false, good) == ErrorCode::kProtocol);
}

TEST_CASE("one bad header is one bad message", "[channels][framing]") {
    for (const std::string_view header :
         {"", "{", "[]", "null", "{}", R"({"msg_id":"m"})", R"({"msg_id":1,"msg_type":"x"})"}) {
        CAPTURE(header);
        const std::string frame = v1({"shell", header, "{}", "{}", "{}"});
        CHECK(refuse(Framing::kV1, true, frame) == ErrorCode::kInvalidArgument);
    }
}

TEST_CASE("a request that cannot be submitted can be answered", "[channels][framing]") {
    const auto problem = [](std::string_view channel, std::string_view content) {
        const DecodedRequest request =
            accept(Framing::kV1, true, v1({channel, kHeader, "{}", "{}", content}));
        CHECK(request.message.header().msg_id == "m");
        CHECK(request.message.content_json() == "{}");
        return request.problem;
    };
    CHECK_FALSE(problem("iopub", "{}").empty());
    CHECK_FALSE(problem("hb", "{}").empty());
    CHECK_FALSE(problem(std::string(5000, 'c'), "{}").empty());
    CHECK_FALSE(problem("shell", "[]").empty());
    CHECK_FALSE(problem("shell", "{\"a\":").empty());
    CHECK_FALSE(problem("shell", "{\"a\":\"\xff\"}").empty());
    CHECK(problem("stdin", "{}").empty());
}

TEST_CASE("a legacy text message has its parts as members", "[channels][framing]") {
    const DecodedRequest request = accept_text(
        {{"channel", "stdin"},
         {"header",
          {{"msg_id", "m"}, {"msg_type", "input_reply"}, {"session", "s"}, {"subshell_id", "7"}}},
         {"parent_header", {{"msg_id", "p"}}},
         {"metadata", {{"k", 1}}},
         {"content", {{"value", "\u00e9"}}},
         {"buffers", json::array()}});
    CHECK(request.problem.empty());
    CHECK(request.message.channel() == Channel::kStdin);
    CHECK(request.message.header().session == "s");
    CHECK(request.message.header().subshell_id == "7");
    CHECK(request.message.parent().msg_id == "p");
    CHECK(request.message.parse_metadata().value() == json{{"k", 1}});
    CHECK(request.message.parse_content().value() == json{{"value", "\u00e9"}});
}

TEST_CASE(
    "members that real clients leave out of a legacy message are added", "[channels][framing]") {
    const json header = {{"msg_id", "m"}, {"msg_type", "execute_request"}, {"version", "5.0"}};
    const json message = GENERATE_COPY(
        json{{"header", header}},
        json{{"header", header}, {"channel", nullptr}, {"buffers", json::object()}},
        json{{"header", header}, {"channel", ""}, {"buffers", nullptr}, {"content", nullptr}},
        json{{"header", header}, {"metadata", nullptr}, {"parent_header", nullptr}},
        json{{"header", header}, {"metadata", "x"}, {"parent_header", json::array()}},
        json{{"header", header}, {"msg_id", "other"}, {"extra", {{"deep", {1, 2}}}}});
    CAPTURE(message);
    const DecodedRequest request = accept_text(message);
    CHECK(request.problem.empty());
    CHECK(request.message.channel() == Channel::kShell);
    CHECK(request.message.header().msg_id == "m");
    CHECK(request.message.parent_header_json() == "{}");
    CHECK(request.message.metadata_json() == "{}");
    CHECK(request.message.content_json() == "{}");
    CHECK(request.message.buffer_count() == 0);
}

TEST_CASE(
    "legacy text may have line ends, escaped names and repeated members", "[channels][framing]") {
    const auto text = GENERATE(
        as<std::string>(),
        R"({"header":{"msg_id":"m","msg_type":"x_request"},"content":{"a":[1,2]},"channel":"control"})",
        "{\n\"header\" : {\"msg_id\":\"m\",\r\n\"msg_type\":\"x_request\"},"
        " \"content\":\n{ \"a\": [1,\n2]}, \"channel\":\"control\"\n}",
        R"({"\u0068eader":{"msg_id":"m","msg_type":"x_request"},"content":{"a":[1,2]},)"
        R"("chann\u0065l":"control","other\n":1})",
        R"({"content":7,"channel":"shell","header":{"msg_id":"m","msg_type":"x_request"},)"
        R"("content":{"a":[1,2]},"channel":"control"})");
    CAPTURE(text);
    const DecodedRequest request = accept(Framing::kLegacy, false, text);
    CHECK(request.problem.empty());
    CHECK(request.message.channel() == Channel::kControl);
    CHECK(request.message.parse_content().value() == json{{"a", {1, 2}}});
    CHECK(request.message.content_json().find_first_of("\r\n") == std::string_view::npos);
}

TEST_CASE(
    "limits::kClientJsonValuesMax: only a message that is rewritten is bounded in values",
    "[channels][framing][limits]") {
    std::string values = "1";
    while (values.size() < 2 * limits::kClientJsonValuesMax) {
        values += ",1";
    }
    const std::string text =
        R"({"header":{"msg_id":"m","msg_type":"x_request"},"content":{"a":[)" + values + "]}}";
    CHECK(accept(Framing::kLegacy, false, text).problem.empty());
    CHECK(refuse(Framing::kLegacy, false, text + "\n") == ErrorCode::kInvalidArgument);
}

TEST_CASE("legacy text that is no message is one bad message", "[channels][framing]") {
    for (const char* text :
         {"",
          "x",
          "[]",
          "{}",
          R"({"header":null})",
          R"({"header":"h"})",
          R"({"header":{"msg_id":"m"}})",
          R"({"header":{"msg_id":"m","msg_type":"x"})"}) {
        CAPTURE(text);
        CHECK(refuse(Framing::kLegacy, false, text) == ErrorCode::kInvalidArgument);
    }
    const std::string deep = "{\"header\":" + std::string(limits::kJsonDepthMax + 1, '[');
    CHECK(refuse(Framing::kLegacy, false, deep) == ErrorCode::kInvalidArgument);
}

TEST_CASE("a legacy message on no channel of a client is answered", "[channels][framing]") {
    const json header = {{"msg_id", "m"}, {"msg_type", "x_request"}};
    const auto problem = [&](const json& channel) {
        return accept_text({{"header", header}, {"channel", channel}}).problem;
    };
    CHECK_FALSE(problem("iopub").empty());
    CHECK_FALSE(problem("nothing").empty());
    CHECK_FALSE(problem(7).empty());
    CHECK(problem("control").empty());
    CHECK_FALSE(accept_text({{"header", header}, {"content", 7}}).problem.empty());
}

TEST_CASE("a legacy binary message carries buffers", "[channels][framing]") {
    const std::string text = json{
        {"header", json::parse(kHeader)},
        {"channel", "shell"},
        {"content", {{"x", 1}}}}.dump();
    const std::string data = legacy_binary(text, {std::string("\0\xff", 2), "", "last"});
    for (const bool binary : {true, false}) {
        const DecodedRequest request = accept(Framing::kLegacy, binary, data);
        CHECK(request.problem.empty());
        REQUIRE(request.message.buffer_count() == 3);
        CHECK(request.message.buffer(0) == std::string_view("\0\xff", 2));
        CHECK(request.message.buffer(1).empty());
        CHECK(request.message.buffer(2) == "last");
    }
    CHECK(accept(Framing::kLegacy, true, legacy_binary(text, {})).message.buffer_count() == 0);
}

TEST_CASE("a malformed legacy offset table breaks the framing", "[channels][framing]") {
    const std::string text = json{{"header", json::parse(kHeader)}}.dump();
    const auto code = [](std::string data) {
        return refuse(Framing::kLegacy, true, std::move(data));
    };
    CHECK(code("") == ErrorCode::kProtocol);
    CHECK(code(std::string(3, '\0')) == ErrorCode::kProtocol);
    CHECK(code(number(0)) == ErrorCode::kProtocol);
    CHECK(code(number(1)) == ErrorCode::kProtocol);
    CHECK(code(number(0xFFFFFFFF) + text) == ErrorCode::kProtocol);
    CHECK(code(number(1) + number(9) + text) == ErrorCode::kProtocol);
    CHECK(code(number(1) + number(4) + text) == ErrorCode::kProtocol);
    CHECK(code(number(2) + number(12) + number(11) + text) == ErrorCode::kProtocol);
    CHECK(code(number(2) + number(12) + number(13 + 200) + text) == ErrorCode::kProtocol);
    CHECK(code(number(1) + number(8) + "not JSON") == ErrorCode::kInvalidArgument);
}

TEST_CASE("as many buffers as a message may have, and no more", "[channels][framing]") {
    const std::string text = json{{"header", json::parse(kHeader)}}.dump();
    const std::vector<std::string> most(limits::kBuffersMax, "b");
    const std::vector<std::string> more(limits::kBuffersMax + 1, "b");
    CHECK(
        accept(Framing::kLegacy, true, legacy_binary(text, most)).message.buffer_count() ==
        limits::kBuffersMax);
    CHECK(refuse(Framing::kLegacy, true, legacy_binary(text, more)) == ErrorCode::kInvalidArgument);
}

TEST_CASE("v1 sends the message's own bytes", "[channels][framing]") {
    const Message message = with_buffers({"b"});
    const OutgoingFrame frame(Framing::kV1, message, OutgoingFrame::Buffers::kLeaveOut);
    CHECK(frame.binary());
    REQUIRE(frame.pieces().size() == 1);
    CHECK(frame.pieces()[0].data() == message.frame().data());
    CHECK(frame.pieces()[0].size() == message.frame().size());
    CHECK_FALSE(frame.reduced());
}

TEST_CASE("legacy sends text with the members that clients index", "[channels][framing]") {
    const OutgoingFrame frame(Framing::kLegacy, with_buffers({}, R"({"t":"é"})"));
    CHECK_FALSE(frame.binary());
    CHECK_FALSE(frame.mended());
    const json message = json::parse(join(frame));
    CHECK(message["msg_id"] == "m");
    CHECK(message["msg_type"] == "comm_msg");
    CHECK(message["channel"] == "iopub");
    CHECK(message["buffers"] == json::array());
    CHECK(message["header"] == json::parse(kHeader));
    CHECK(message["parent_header"] == json{{"msg_id", "p"}});
    CHECK(message["metadata"] == json{{"a", 1}});
    CHECK(message["content"] == json{{"t", "é"}});
}

TEST_CASE("legacy with buffers is read back as it was", "[channels][framing]") {
    const OutgoingFrame frame(
        Framing::kLegacy, with_buffers({std::string_view("\0\xff", 2), "", "x"}));
    REQUIRE(frame.binary());
    const std::string data = join(frame);
    CHECK(data.substr(0, 8) == number(4) + number(20));
    std::string text = data.substr(20, data.size() - 20 - 3);
    CHECK(json::parse(text)["buffers"] == json::array());
    // The decoder for clients' messages reads the same table; no client sends on this channel.
    const DecodedRequest again = accept(Framing::kLegacy, true, data);
    REQUIRE(again.message.buffer_count() == 3);
    CHECK(again.message.buffer(0) == std::string_view("\0\xff", 2));
    CHECK(again.message.buffer(2) == "x");
}

TEST_CASE("buffers can be left out for clients that cannot read them", "[channels][framing]") {
    const OutgoingFrame frame(
        Framing::kLegacy, with_buffers({"b"}), OutgoingFrame::Buffers::kLeaveOut);
    CHECK_FALSE(frame.binary());
    CHECK(frame.reduced());
    CHECK(json::parse(join(frame))["buffers"] == json::array());
}

TEST_CASE("a kernel that writes no JSON does not break legacy clients", "[channels][framing]") {
    for (const char* content : {"", "[]", "{", "{\"a\":\"\xff\"}", R"({},"header":{})"}) {
        CAPTURE(content);
        const OutgoingFrame frame(Framing::kLegacy, with_buffers({}, content));
        CHECK(frame.mended());
        const json message = protocol::parse_json(join(frame), "sent").value();
        CHECK(message["content"] == json::object());
        CHECK(message["header"]["msg_id"] == "m");
    }
}

}  // namespace
}  // namespace cellkeep::jupyter::test
