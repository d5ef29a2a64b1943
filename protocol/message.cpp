// SPDX-License-Identifier: Apache-2.0
#include "protocol/message.hpp"

#include "protocol/frame.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>

namespace cellkeep::protocol {

namespace {

constexpr std::array<std::string_view, 4> kChannelNames{"shell", "control", "stdin", "iopub"};

// Places of the parts in a frame.
enum PartIndex : std::size_t { kChannel, kHeader, kParentHeader, kMetadata, kContent, kBuffers };
static_assert(kBuffers == kFramePartsMin);

}  // namespace

std::string_view to_string(Channel channel) {
    return kChannelNames[static_cast<std::size_t>(channel)];
}

std::optional<Channel> find_channel(std::string_view name) {
    for (std::size_t i = 0; i < kChannelNames.size(); ++i) {
        if (kChannelNames[i] == name) {
            return static_cast<Channel>(i);
        }
    }
    return std::nullopt;
}

// The parts are found through the frame's own offset table, which was checked when the body was
// made.
struct Message::Body {
    std::string frame;
    Channel channel = Channel::kShell;
    Header header;
    Header parent;
    struct Scanned {
        ContentOutline outline;
        bool metadata_valid = false;
        bool one_line = true;  // no line ends in the content
    };

    std::string_view part(std::size_t index) const { return frame_part(frame, index); }
    const Scanned& scanned() const;
    /// Call it before the body is shared.
    void set_scanned(const ContentOutline& outline, bool metadata_valid) {
        given_ = Scanned{outline, metadata_valid, true};
    }

 private:
    std::optional<Scanned> given_;  // if it was scanned before the body was made
    mutable std::once_flag scanning_;
    mutable std::optional<Scanned> scanned_;  // if not: at the first call
};

const Message::Body::Scanned& Message::Body::scanned() const {
    if (given_.has_value()) {
        return *given_;  // without the system call that the first std::call_once makes
    }
    std::call_once(scanning_, [this] {
        const std::string_view content = part(kContent);
        scanned_ = Scanned{
            outline_of(content),
            is_valid_json_object(part(kMetadata)),
            content.find_first_of("\r\n") == std::string_view::npos};
    });
    return *scanned_;
}

Message::Message(std::shared_ptr<const Body> body) : body_(std::move(body)) {}

Result<Message> Message::create(const MessageParts& parts) {
    auto body = std::make_shared<Body>();
    body->channel = parts.channel;
    BOOST_OUTCOME_TRY(body->header, parse_header(parts.header));
    BOOST_OUTCOME_TRY(body->parent, parse_parent_header(parts.parent_header));
    if (parts.buffers.size() > limits::kBuffersMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "message: more than " + std::to_string(limits::kBuffersMax) + " buffers");
    }
    std::vector<std::string_view> views{
        to_string(parts.channel), parts.header, parts.parent_header, parts.metadata, parts.content};
    views.insert(views.end(), parts.buffers.begin(), parts.buffers.end());
    BOOST_OUTCOME_TRY(body->frame, encode_frame(views));
    return Message(std::move(body));
}

Result<std::shared_ptr<Message::Body>> Message::read_body(std::string frame) {
    BOOST_OUTCOME_TRY(check_frame(frame));
    auto body = std::make_shared<Body>();
    body->frame = std::move(frame);
    const auto channel = find_channel(body->part(kChannel));
    if (!channel) {
        return Error(ErrorCode::kProtocol, "frame: unknown channel");
    }
    body->channel = *channel;
    BOOST_OUTCOME_TRY(body->header, parse_header(body->part(kHeader)));
    BOOST_OUTCOME_TRY(body->parent, parse_parent_header(body->part(kParentHeader)));
    return body;
}

Result<Message> Message::from_frame(std::string frame) {
    BOOST_OUTCOME_TRY(auto body, read_body(std::move(frame)));
    return Message(std::move(body));
}

Result<Message> Message::from_scanned_frame(
    std::string frame, const ContentOutline& outline, bool metadata_valid) {
    BOOST_OUTCOME_TRY(auto body, read_body(std::move(frame)));
    body->set_scanned(outline, metadata_valid);
    return Message(std::move(body));
}

Message Message::make(
    Channel channel,
    const Header& header,
    const nlohmann::json& parent_header,
    const nlohmann::json& content,
    const nlohmann::json& metadata) {
    CELLKEEP_CHECK(parent_header.is_object() && content.is_object() && metadata.is_object());
    const std::string header_text = to_json_text(header);
    std::string parent_text = dump_json(parent_header);
    if (parent_text.size() > limits::kHeaderBytesMax) {
        // A peer's header came within the limit, but its numbers may be written longer by dump().
        Header known;
        for (const auto& [name, field] :
             {std::pair{"msg_id", &known.msg_id},
              std::pair{"session", &known.session},
              std::pair{"username", &known.username},
              std::pair{"date", &known.date},
              std::pair{"msg_type", &known.msg_type},
              std::pair{"version", &known.version}}) {
            const auto found = parent_header.find(name);
            if (found != parent_header.end() && found->is_string()) {
                *field = found->get_ref<const std::string&>();
            }
        }
        parent_text = to_json_text(known);
    }
    const std::string metadata_text = dump_json(metadata);
    const std::string content_text = dump_json(content);
    auto message = create(MessageParts{
        .channel = channel,
        .header = header_text,
        .parent_header = parent_text,
        .metadata = metadata_text,
        .content = content_text,
        .buffers = {}});
    CELLKEEP_CHECK(message.has_value());
    return std::move(message).value();
}

Channel Message::channel() const {
    return body_->channel;
}

const Header& Message::header() const {
    return body_->header;
}

const Header& Message::parent() const {
    return body_->parent;
}

std::string_view Message::header_json() const {
    return body_->part(kHeader);
}

std::string_view Message::parent_header_json() const {
    return body_->part(kParentHeader);
}

std::string_view Message::metadata_json() const {
    return body_->part(kMetadata);
}

std::string_view Message::content_json() const {
    return body_->part(kContent);
}

const ContentOutline& Message::outline() const {
    return body_->scanned().outline;
}

bool Message::has_valid_metadata() const {
    return body_->scanned().metadata_valid;
}

RawJson Message::member(Member member) const {
    const Body::Scanned& scanned = body_->scanned();
    const std::string_view text = scanned.outline.find(member, content_json());
    if (text.empty()) {
        return {};
    }
    if (!scanned.one_line) {
        std::string copy(text);
        std::replace_if(
            copy.begin(), copy.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
        return RawJson(std::move(copy));
    }
    return {body_, text, body_->frame.capacity()};
}

std::size_t Message::buffer_count() const {
    return frame_part_count(body_->frame) - kFramePartsMin;
}

std::string_view Message::buffer(std::size_t index) const {
    CELLKEEP_CHECK(index < buffer_count());
    return body_->part(kBuffers + index);
}

Result<nlohmann::json> Message::parse_content() const {
    return parse_json_object(content_json(), "content");
}

Result<nlohmann::json> Message::parse_metadata() const {
    return parse_json_object(metadata_json(), "metadata");
}

std::string_view Message::frame() const {
    return body_->frame;
}

Result<Message> Message::with_channel(Channel channel) const {
    BOOST_OUTCOME_TRY(auto parts, decode_frame(body_->frame));
    parts.front() = to_string(channel);
    BOOST_OUTCOME_TRY(auto frame, encode_frame(parts));
    auto body = std::make_shared<Body>();
    body->frame = std::move(frame);
    body->channel = channel;
    body->header = body_->header;
    body->parent = body_->parent;
    return Message(std::move(body));
}

}  // namespace cellkeep::protocol
