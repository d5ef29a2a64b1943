// SPDX-License-Identifier: Apache-2.0
//
// One HTTP response as plain values: text held in memory, in one piece or in pieces that it shares
// with others, a range of an open file that the
// connection streams, a body written while it is sent, or a WebSocket or a tunnel that takes the
// connection over. Content-Length, Date and
// Connection are the connection's business.
#pragma once

#include "kernel-manager/http/message/headers.hpp"
#include "kernel-manager/http/message/streaming.hpp"
#include "kernel-manager/http/websocket/websocket.hpp"
#include "protocol/support/unique_fd.hpp"
#include "protocol/text_pieces.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace cellkeep::http {

/// length bytes from offset of a regular file, read with pread(2).
struct FileBody {
    UniqueFd fd;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

struct Response {
    int status = 200;
    Headers headers;
    std::variant<
        std::string,
        FileBody,
        WebSocketUpgrade,
        StreamBody,
        protocol::TextPieces,
        TunnelBody>
        body;
    /// Another server's answer, which is passed on: nothing is added to its headers or said in the
    /// style of this server.
    bool foreign = false;

    /// 0 for a stream of unknown length, a WebSocket and a tunnel.
    std::uint64_t content_length() const;
};

/// The standard reason phrase, or "Unknown".
std::string_view reason_phrase(int status);

Response make_json(int status, const nlohmann::json& value);
/// The same of what is JSON text already.
Response make_json_text(int status, protocol::TextPieces text);
/// No body: 204 and the like.
Response make_empty(int status);

}  // namespace cellkeep::http
