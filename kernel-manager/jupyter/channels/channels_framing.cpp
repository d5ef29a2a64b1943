// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/channels/channels_framing.hpp"

#include "protocol/frame.hpp"
#include "protocol/json.hpp"
#include "protocol/json_scanner.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

namespace cellkeep::jupyter {

namespace {

using nlohmann::json;
using protocol::Channel;
using protocol::Message;

constexpr std::string_view kEmptyObject = "{}";
constexpr std::size_t kNumberBytes = 4;

Error bad_message(const std::string& why) {
    return {ErrorCode::kInvalidArgument, why};
}

Error bad_framing(const std::string& why) {
    return {ErrorCode::kProtocol, "legacy framing: " + why};
}

/// Big-endian, as struct.pack("!I").
std::uint32_t read_number(std::string_view data, std::size_t index) {
    std::uint32_t number = 0;
    for (const char byte : data.substr(index * kNumberBytes, kNumberBytes)) {
        number = number << 8U | static_cast<unsigned char>(byte);
    }
    return number;
}

void append_number(std::string& out, std::uint32_t number) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        out += static_cast<char>(number >> shift & 0xFFU);
    }
}

std::string_view object_or_empty(std::string_view text) {
    return protocol::is_valid_json_object(text) ? text : kEmptyObject;
}

/// Puts in what clients leave out. The parts are views; parts.channel is ignored.
struct Request {
    std::string_view channel;
    protocol::MessageParts parts;
    std::string problem;

    void complete();
    Result<DecodedRequest> build();
};

void Request::complete() {
    if (channel.empty()) {
        channel = protocol::to_string(Channel::kShell);
    }
    const std::optional<Channel> found = protocol::find_channel(channel);
    if (found.has_value() && *found != Channel::kIopub) {
        parts.channel = *found;
    } else {
        parts.channel = Channel::kShell;
        problem = "a client cannot send on channel \"" +
                  std::string(channel.substr(0, limits::kHeaderFieldBytesMax)) + "\"";
    }
    if (parts.parent_header.empty() ||
        protocol::parse_parent_header(parts.parent_header).has_error()) {
        parts.parent_header = kEmptyObject;
    }
    parts.metadata = object_or_empty(parts.metadata);
    if (parts.content.empty() || parts.content == "null") {
        parts.content = kEmptyObject;
    }
    if (!protocol::is_valid_json_object(parts.content)) {
        // Only what is wrong is parsed: it says where.
        const auto content = protocol::parse_json_object(parts.content, "content");
        problem = content.has_error() ? content.error().message() : "content: not a JSON object";
        parts.content = kEmptyObject;
    }
}

Result<DecodedRequest> Request::build() {
    auto message = Message::create(parts);
    if (message.has_error() && message.error().code() == ErrorCode::kLimitExceeded) {
        problem = message.error().message();
        parts.content = kEmptyObject;
        parts.metadata = kEmptyObject;
        parts.buffers.clear();
        message = Message::create(parts);
    }
    if (message.has_error()) {
        return bad_message(message.error().message());
    }
    return DecodedRequest{std::move(message).value(), std::move(problem)};
}

Result<DecodedRequest> decode_v1(std::string frame) {
    auto parts = protocol::decode_frame(frame);
    if (parts.has_error()) {
        // Too short for the table that it announces: no frame at all.
        const bool fits = frame.size() / sizeof(std::uint64_t) > limits::kBuffersMax;
        const bool too_much = parts.error().code() == ErrorCode::kLimitExceeded && fits;
        const std::string why = parts.error().message();
        return too_much ? bad_message(why) : Error(ErrorCode::kProtocol, why);
    }
    const protocol::FrameParts& given = parts.value();
    Request request;
    request.channel = given[0];
    request.parts.header = given[1];
    request.parts.parent_header = given[2];
    request.parts.metadata = given[3];
    request.parts.content = given[4];
    request.parts.buffers.assign(given.begin() + protocol::kFramePartsMin, given.end());
    request.complete();
    const bool as_given = request.problem.empty() && request.channel.data() == given[0].data() &&
                          request.parts.parent_header.data() == given[2].data() &&
                          request.parts.metadata.data() == given[3].data() &&
                          request.parts.content.data() == given[4].data();
    if (!as_given) {
        return request.build();
    }
    auto message = Message::from_frame(std::move(frame));
    if (message.has_error()) {
        return bad_message(message.error().message());
    }
    return DecodedRequest{std::move(message).value(), std::string()};
}

/// Finds the members of a message's object without building values of it: a content may have
/// millions.
class MessageMembers final : public protocol::JsonListener {
 public:
    /// Returns whether the text, which must outlive this, is an object on one line.
    bool read(std::string_view text) {
        text_ = text;
        members_ = {};
        escaped_ = false;
        protocol::JsonScanner scanner(this);
        return scanner.advance(text, text.size()) == protocol::JsonScanner::State::kValid &&
               !scanner.has_line_ends() && protocol::starts_json_object(text);
    }

    /// A member's name has an escape, so get() may miss it.
    bool has_escaped_names() const { return escaped_; }

    void on_key(std::size_t depth, protocol::JsonRange key) override {
        if (depth == 1) {
            key_ = text_.substr(key.begin + 1, key.end - key.begin - 2);
            escaped_ = escaped_ || key_.find('\\') != std::string_view::npos;
        }
    }
    void on_value(std::size_t depth, protocol::JsonRange value) override {
        if (depth == 1) {
            const auto wanted = std::find(kNames.begin(), kNames.end(), key_);
            if (wanted != kNames.end()) {
                members_[static_cast<std::size_t>(wanted - kNames.begin())] =
                    text_.substr(value.begin, value.end - value.begin);
            }
        }
    }

    /// A member's text; "" if it is missing or null. The last of a repeated name counts.
    std::string_view get(std::string_view name) const {
        const auto wanted = std::find(kNames.begin(), kNames.end(), name);
        CELLKEEP_CHECK(wanted != kNames.end());
        const std::string_view text = members_[static_cast<std::size_t>(wanted - kNames.begin())];
        return text == "null" ? std::string_view() : text;
    }

 private:
    static constexpr std::array<std::string_view, 5> kNames{
        "channel", "header", "parent_header", "metadata", "content"};

    std::string_view text_;
    std::string_view key_;
    bool escaped_ = false;
    std::array<std::string_view, kNames.size()> members_;
};

/// What is passed on stands on one line; such text is rare and parsed. An error says where it is.
Result<std::string> rewrite_on_one_line(std::string_view text) {
    BOOST_OUTCOME_TRY(
        const json value,
        protocol::parse_json(
            text, "message", protocol::RepeatedKeys::kLastCounts, limits::kClientJsonValuesMax));
    if (!value.is_object()) {
        return Error(ErrorCode::kProtocol, "message: not a JSON object");
    }
    return protocol::dump_json(value);
}

/// A channel's name without its quotes; "?" if the member is no string.
std::string_view channel_name(std::string_view member) {
    if (member.empty()) {
        return member;
    }
    return member.front() == '"' ? member.substr(1, member.size() - 2) : std::string_view("?");
}

Result<DecodedRequest> decode_legacy(std::string_view text, std::vector<std::string_view> buffers) {
    MessageMembers members;
    std::string rewritten;
    if (!members.read(text) || members.has_escaped_names()) {
        auto one_line = rewrite_on_one_line(text);
        if (one_line.has_error()) {
            return bad_message(one_line.error().message());
        }
        rewritten = std::move(one_line).value();
        if (!members.read(rewritten)) {
            return bad_message("message: not a JSON object");
        }
    }
    Request request;
    request.channel = channel_name(members.get("channel"));
    request.parts.header = members.get("header");
    request.parts.parent_header = members.get("parent_header");
    request.parts.metadata = members.get("metadata");
    request.parts.content = members.get("content");
    request.parts.buffers = std::move(buffers);
    request.complete();
    return request.build();
}

Result<DecodedRequest> decode_legacy_binary(std::string_view data) {
    if (data.size() < kNumberBytes) {
        return bad_framing("shorter than its count");
    }
    const std::size_t count = read_number(data, 0);  // of the JSON and the buffers
    if (count == 0) {
        return bad_framing("it has no parts");
    }
    if (count > (data.size() - kNumberBytes) / kNumberBytes) {
        return bad_framing("more offsets than bytes");
    }
    if (count > limits::kBuffersMax + 1) {
        return bad_message(
            "message: more than " + std::to_string(limits::kBuffersMax) + " buffers");
    }
    std::vector<std::string_view> parts;
    parts.reserve(count);
    std::size_t begin = read_number(data, 1);
    if (begin != (count + 1) * kNumberBytes) {
        return bad_framing("the first offset is not the table's end");
    }
    for (std::size_t i = 1; i <= count; ++i) {
        const std::size_t end = i == count ? data.size() : read_number(data, i + 1);
        if (end < begin || end > data.size()) {
            return bad_framing("an offset is out of order or out of bounds");
        }
        parts.push_back(data.substr(begin, end - begin));
        begin = end;
    }
    const std::string_view text = parts.front();
    parts.erase(parts.begin());
    return decode_legacy(text, std::move(parts));
}

}  // namespace

Result<DecodedRequest> decode_request(Framing framing, bool binary, std::string data) {
    if (framing == Framing::kV1) {
        if (!binary) {
            return Error(
                ErrorCode::kProtocol, std::string(kV1Protocol).append(" has binary messages only"));
        }
        return decode_v1(std::move(data));
    }
    if (binary || data.starts_with('\0')) {
        return decode_legacy_binary(data);
    }
    return decode_legacy(data, {});
}

OutgoingFrame::OutgoingFrame(Framing framing, Message message, Buffers buffers)
    : framing_(framing), message_(std::move(message)) {
    if (framing_ == Framing::kLegacy) {
        reduced_ = buffers == Buffers::kLeaveOut && message_.buffer_count() > 0;
        binary_ = message_.buffer_count() > 0 && !reduced_;
        encode_legacy();
    }
}

void OutgoingFrame::encode_legacy() {
    metadata_ = message_.has_valid_metadata() ? message_.metadata_json() : kEmptyObject;
    content_ = message_.outline().valid ? message_.content_json() : kEmptyObject;
    mended_ = metadata_.data() == kEmptyObject.data() || content_.data() == kEmptyObject.data();
    names_ = R"(,"msg_id":)" + protocol::dump_json(message_.header().msg_id) + R"(,"msg_type":)" +
             protocol::dump_json(message_.header().msg_type) + R"(,"channel":")" +
             std::string(protocol::to_string(message_.channel())) + R"(","buffers":[]})";
    if (!binary_) {
        return;
    }
    const std::size_t count = message_.buffer_count() + 1;
    std::size_t json_bytes = 0;
    for (const std::string_view piece : pieces()) {
        json_bytes += piece.size();
    }
    // Every number fits: a message has at most limits::kFrameBytesMax bytes.
    append_number(table_, static_cast<std::uint32_t>(count));
    std::size_t offset = (count + 1) * kNumberBytes;
    append_number(table_, static_cast<std::uint32_t>(offset));
    offset += json_bytes;
    for (std::size_t i = 0; i + 1 < count; ++i) {
        append_number(table_, static_cast<std::uint32_t>(offset));
        offset += message_.buffer(i).size();
    }
}

std::vector<std::string_view> OutgoingFrame::pieces() const {
    if (framing_ == Framing::kV1) {
        return {message_.frame()};
    }
    std::vector<std::string_view> pieces;
    if (!table_.empty()) {
        pieces.emplace_back(table_);
    }
    for (const std::string_view piece :
         {std::string_view(R"({"header":)"),
          message_.header_json(),
          std::string_view(R"(,"parent_header":)"),
          message_.parent_header_json(),
          std::string_view(R"(,"metadata":)"),
          metadata_,
          std::string_view(R"(,"content":)"),
          content_,
          std::string_view(names_)}) {
        pieces.push_back(piece);
    }
    for (std::size_t i = 0; !table_.empty() && i < message_.buffer_count(); ++i) {
        pieces.push_back(message_.buffer(i));
    }
    return pieces;
}

}  // namespace cellkeep::jupyter
