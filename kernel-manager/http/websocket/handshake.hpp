// SPDX-License-Identifier: Apache-2.0
//
// The head of a WebSocket's opening handshake (RFC 6455, section 4.2.1), looked at before anything
// of it is answered. Pure.
#pragma once

#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"

#include <optional>

namespace cellkeep::http {

struct HandshakeView {
    /// Set if the request is a handshake that can be accepted.
    std::optional<WebSocketOffer> offer;
    /// It is one but for its version: answered with 426 and the version that is spoken here.
    bool version_unknown = false;
};

enum class HttpVersion { kOld, k11 };

/// A request that asks for an upgrade and is not well-formed is a plain request: section 4.2.1
/// allows an answer of any kind, and a handler that wants a WebSocket says what is missing.
HandshakeView inspect_handshake(const Request& request, HttpVersion version);

/// 426 Upgrade Required (section 4.4).
Response make_version_refusal();

}  // namespace cellkeep::http
