// SPDX-License-Identifier: Apache-2.0
//
// A Jupyter message as an immutable value (Jupyter messaging specification 5.5, "General Message
// Format"). It owns one byte string in the v1.kernel.websocket.jupyter.org framing, the form in
// which messages cross the kernel link, so passing a message on never encodes it again. The two
// headers are parsed when the message is made; content only when a caller asks. Copies share the
// bytes. Thread-safe: immutable.
#pragma once

#include "protocol/content_outline.hpp"
#include "protocol/header.hpp"
#include "protocol/json.hpp"
#include "protocol/raw_json.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::protocol {

enum class Channel { kShell, kControl, kStdin, kIopub };

std::string_view to_string(Channel channel);  // "shell", "control", "stdin", "iopub"
std::optional<Channel> find_channel(std::string_view name);

/// The parts of a message as JSON texts; the input of Message::create.
struct MessageParts {
    Channel channel = Channel::kShell;
    std::string_view header;
    std::string_view parent_header = "{}";
    std::string_view metadata = "{}";
    std::string_view content = "{}";
    std::vector<std::string_view> buffers;
};

class Message {
 public:
    /// Encodes and parses the headers. Fails as parse_header does, with kLimitExceeded past
    /// limits::kFrameBytesMax or kBuffersMax.
    static Result<Message> create(const MessageParts& parts);

    /// Takes the bytes of one v1 frame (without a length prefix), checks the offset table and
    /// parses the headers. kProtocol names what is wrong; kLimitExceeded as in create().
    static Result<Message> from_frame(std::string frame);

    /// The same for a frame whose content has been scanned already (content_outline.hpp), so that
    /// outline() does not read it again. metadata_valid: its metadata is a JSON object, scanned
    /// too. Precondition: neither has line ends.
    static Result<Message> from_scanned_frame(
        std::string frame, const ContentOutline& outline, bool metadata_valid);

    /// A message of our own making. Precondition: the values are objects, the header has a msg_id
    /// and a msg_type, and all of it fits limits::kFrameBytesMax. A parent header whose text would
    /// pass limits::kHeaderBytesMax is cut down to the fields of Header.
    static Message make(
        Channel channel,
        const Header& header,
        const nlohmann::json& parent_header,
        const nlohmann::json& content,
        const nlohmann::json& metadata = nlohmann::json::object());

    Channel channel() const;
    const Header& header() const;
    /// The parent's fields; every field empty if the parent header is {}.
    const Header& parent() const;

    // JSON texts, valid as long as any copy of this message.
    std::string_view header_json() const;
    std::string_view parent_header_json() const;
    std::string_view metadata_json() const;
    std::string_view content_json() const;
    /// The outline of content_json(). Scanned once, at the first call if not before.
    const ContentOutline& outline() const;
    /// Whether metadata_json() is a JSON object. As outline().
    bool has_valid_metadata() const;
    /// A member of the content; null if it is not there or the content is not an object. Refers to
    /// this message's bytes, unless they have line ends: those become spaces in a copy.
    RawJson member(Member member) const;
    std::size_t buffer_count() const;
    /// Precondition: index < buffer_count().
    std::string_view buffer(std::size_t index) const;

    /// Parses the content now (not cached). kProtocol if it is not a JSON object.
    Result<nlohmann::json> parse_content() const;
    Result<nlohmann::json> parse_metadata() const;

    /// The v1 frame's bytes, as on the kernel link (after the length prefix) and on a v1 WebSocket.
    std::string_view frame() const;

    /// This message on another channel; copies the bytes. kLimitExceeded if the longer name of the
    /// channel takes the frame past limits::kFrameBytesMax.
    Result<Message> with_channel(Channel channel) const;

 private:
    struct Body;
    explicit Message(std::shared_ptr<const Body> body);
    static Result<std::shared_ptr<Body>> read_body(std::string frame);
    std::shared_ptr<const Body> body_;
};

}  // namespace cellkeep::protocol
