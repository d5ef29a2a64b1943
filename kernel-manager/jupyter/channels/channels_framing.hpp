// SPDX-License-Identifier: Apache-2.0
//
// How Jupyter messages stand in WebSocket messages: v1.kernel.websocket.jupyter.org (the frame that
// a Message owns anyway) and the older framing without a name ("legacy"): JSON text, or with
// buffers a table of big-endian 32-bit numbers (count, offsets), the JSON and the buffers
// (jupyter_server "WebSocket protocols"). Decoding tolerates what real clients leave out.
// Thread-safe: pure functions and plain values.
#pragma once

#include "protocol/message.hpp"
#include "protocol/support/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::jupyter {

inline constexpr std::string_view kV1Protocol = "v1.kernel.websocket.jupyter.org";

enum class Framing { kV1, kLegacy };

/// What a client sent. With a problem it is not to be submitted: the message then has the client's
/// header, a channel to answer on and no content.
struct DecodedRequest {
    protocol::Message message;
    std::string problem;
};

/// A missing or empty channel is shell; missing, null or unusable parent_header and metadata are
/// {}, as is a missing content; of "buffers" in JSON text nothing is read. Errors: kProtocol if the
/// framing itself is broken, so that the peer and we do not speak the same; kInvalidArgument for
/// one bad message that cannot even be answered. Legacy text that begins with NUL is a binary
/// message that a proxy has sent on as text.
Result<DecodedRequest> decode_request(Framing framing, bool binary, std::string data);

/// One message on its way to a client: gathered from the bytes that the message owns.
class OutgoingFrame {
 public:
    enum class Buffers { kSend, kLeaveOut };

    /// kLeaveOut concerns the legacy framing only, for clients that break on binary messages.
    OutgoingFrame(Framing framing, protocol::Message message, Buffers buffers = Buffers::kSend);

    bool binary() const { return binary_; }
    /// Views of this frame's and the message's bytes; valid as long as both live where they are.
    std::vector<std::string_view> pieces() const;
    /// The kernel wrote content or metadata that is not JSON: {} stands in its place, because one
    /// such text would end a legacy client's connection.
    bool mended() const { return mended_; }
    /// Buffers were left out.
    bool reduced() const { return reduced_; }

 private:
    void encode_legacy();

    Framing framing_;
    protocol::Message message_;
    bool binary_ = true;
    bool mended_ = false;
    bool reduced_ = false;
    std::string table_;
    std::string names_;  // msg_id, msg_type and channel as JSON members
    std::string_view metadata_;
    std::string_view content_;
};

}  // namespace cellkeep::jupyter
