// SPDX-License-Identifier: Apache-2.0
//
// A Jupyter message as an immutable value (Jupyter messaging specification 5.5, "General Message
// Format"). It owns one byte string in the v1.kernel.websocket.jupyter.org framing, the form in which
// messages cross the kernel link, so passing a message on never encodes it again. The two headers are
// parsed when the message is made; content only when somebody asks. Copies share the bytes.
// Thread-safe: immutable.
#pragma once

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

/// The fields of a header. `date` is ISO 8601 text and is not interpreted. Fields that are missing
/// become empty, except that a message without msg_id or msg_type is refused.
struct Header {
    std::string msg_id;
    std::string session;
    std::string username;
    std::string date;
    std::string msg_type;
    std::string version;
    std::optional<std::string> subshell_id;  // JEP 91
};

nlohmann::json to_json(const Header& header);
/// kProtocol if the text is not a JSON object, too long (limits::kHeaderBytesMax), too deep, or lacks
/// msg_id or msg_type as strings of at most limits::kHeaderFieldBytesMax bytes.
Result<Header> parse_header(std::string_view json);

/// A header made now: fresh random msg_id (UUID 4 form), current date, protocol version 5.5.
Header make_header(std::string_view msg_type, std::string_view session, std::string_view username);

/// JSON text to a value: strict, bounded depth (limits::kJsonDepthMax), never throws. kProtocol
/// (or the given code) names what and where. Invalid UTF-8 is refused.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view what);

/// JSON to text. Invalid UTF-8 in strings is replaced by U+FFFD, never thrown.
std::string dump_json(const nlohmann::json& value);

/// What a message is made of, as JSON texts; the input of Message::create.
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

    /// Takes the bytes of one v1 frame (without a length prefix), checks the offset table and parses
    /// the headers. kProtocol names what is wrong.
    static Result<Message> from_frame(std::string frame);

    /// A message of our own making. The values must be objects.
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
    std::size_t buffer_count() const;
    std::string_view buffer(std::size_t index) const;

    /// Parses the content now (not cached). kProtocol if it is not a JSON object.
    Result<nlohmann::json> parse_content() const;
    Result<nlohmann::json> parse_metadata() const;

    /// The v1 frame's bytes, as on the kernel link (after the length prefix) and on a v1 WebSocket.
    std::string_view frame() const;

    /// This message on another channel, or with another parent; copies the bytes.
    Message with_channel(Channel channel) const;

  private:
    struct Body;
    explicit Message(std::shared_ptr<const Body> body);
    std::shared_ptr<const Body> body_;
};

}  // namespace cellkeep::protocol
