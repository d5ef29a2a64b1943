// SPDX-License-Identifier: Apache-2.0
//
// The bounds of preview addresses.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cellkeep::preview {

/// Connections into one session at once: requests on their way, streams and WebSockets.
inline constexpr std::size_t kPreviewConnectionsMax = 64;
/// Tokens of one session that have not expired.
inline constexpr std::size_t kPreviewTokensMax = 64;
/// How long a token is good unless its maker says otherwise, and at most.
inline constexpr std::chrono::seconds kPreviewTokenTimeDefault{3600};
inline constexpr std::chrono::seconds kPreviewTokenTimeMax{30LL * 86'400};
/// The head of an answer, its fields, and the interim answers (1xx) before it.
inline constexpr std::size_t kPreviewHeadBytesMax = 64ULL << 10U;
inline constexpr std::size_t kPreviewFieldsMax = 128;
inline constexpr int kPreviewInterimAnswersMax = 8;
/// Bytes of an answer, or of one direction of a WebSocket, that wait here for a slower reader. Of a
/// request's body it is one piece as the connection reads it.
inline constexpr std::size_t kPreviewBufferBytes = 32ULL << 10U;
/// The body of one request. It is passed on piece by piece.
inline constexpr std::uint64_t kPreviewBodyBytesMax = 1ULL << 30U;
/// Ports of one session whose first use is logged.
inline constexpr std::size_t kPreviewPortsLoggedMax = 64;

/// How long is waited for the server inside.
struct PreviewPatience {
    /// From the request to the first byte of its answer, and from there to the head's end.
    std::chrono::milliseconds answer{120'000};
    std::chrono::milliseconds head{10'000};
    /// Without a byte in either direction.
    std::chrono::milliseconds idle{600'000};
};

}  // namespace cellkeep::preview
