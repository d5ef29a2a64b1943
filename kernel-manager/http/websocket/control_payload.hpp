// SPDX-License-Identifier: Apache-2.0
//
// What the payloads of WebSocket control frames say (RFC 6455, section 5.5). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::http {

/// A control frame holds 125 bytes, two of which are the code (RFC 6455, section 5.5).
inline constexpr std::size_t kReasonBytesMax = 123;

/// The reason, cut to kReasonBytesMax, but not in the middle of a UTF-8 character.
std::string cut_reason(std::string reason);
/// The payload of a close frame (RFC 6455, section 5.5.1). The reason is cut.
std::string make_close(std::uint16_t code, std::string reason);
/// A whole ping frame that carries a number (RFC 6455, section 5.5.2).
std::string make_proof(std::uint64_t number);
/// The number in a pong's payload. Returns nullopt if it answers another kind of ping.
std::optional<std::uint64_t> read_proof(std::string_view payload);

}  // namespace cellkeep::http
