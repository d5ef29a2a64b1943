// SPDX-License-Identifier: Apache-2.0
//
// The head of a response as bytes on the wire: status line and headers (RFC 9112, section 4). Pure.
#pragma once

#include "kernel-manager/http/message/response.hpp"

#include <string>

namespace cellkeep::http {

/// kTunnel: the connection speaks another protocol from here on.
enum class After { kKeepAlive, kClose, kTunnel };

/// How the end of the body is marked (RFC 9112, section 6).
enum class Framing { kLength, kChunked, kUntilClose };

/// With Date, Server, the body's framing and Connection, up to and including the empty line; with
/// "Cache-Control: no-store" and nosniff unless the response says them itself. A header value
/// cannot end its line, whatever it holds.
std::string serialize_head(
    const Response& response, After after, Framing framing = Framing::kLength);

}  // namespace cellkeep::http
