// SPDX-License-Identifier: Apache-2.0
//
// The v1.kernel.websocket.jupyter.org binary framing (jupyter_server "WebSocket protocols"): a
// table of unsigned 64-bit little-endian offsets (their count first), then the parts: channel name,
// header, parent_header, metadata, content, buffers…. The first offset is the table's own length,
// the last the frame's. On the kernel link each frame follows its length as an unsigned 32-bit
// little-endian number.
#pragma once

#include "protocol/support/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::protocol {

/// Parts of a frame, in order, as views into it. At least five: channel, header, parent_header,
/// metadata, content.
using FrameParts = std::vector<std::string_view>;
inline constexpr std::size_t kFramePartsMin = 5;

/// kLimitExceeded past limits::kFrameBytesMax or limits::kBuffersMax; kInvalidArgument with fewer
/// than kFramePartsMin parts.
Result<std::string> encode_frame(std::span<const std::string_view> parts);

/// Checks the offset table wholly before a part is touched: count, order, bounds, exact end.
/// kProtocol says what is wrong, kLimitExceeded which limit. The views live as long as the bytes.
Result<FrameParts> decode_frame(std::string_view frame);

/// The check alone, for callers that then read the parts in place.
Status check_frame(std::string_view frame);
/// Precondition of both: check_frame(frame) succeeded and index < frame_part_count(frame).
std::size_t frame_part_count(std::string_view frame);
std::string_view frame_part(std::string_view frame, std::size_t index);

/// Length of the prefix on the kernel link.
inline constexpr std::size_t kLinkPrefixBytes = 4;

/// The prefix for a frame of this many bytes. Precondition: 1 … limits::kFrameBytesMax.
std::string encode_link_prefix(std::size_t frame_bytes);

/// Cuts a byte stream into frames. Bounded when next() is called until it has nothing before more
/// is appended: it then never holds more than one prefixed frame of limits::kFrameBytesMax and what
/// one append() adds. Not thread-safe.
class LinkDecoder {
 public:
    void append(std::string_view bytes);
    /// The next whole frame's bytes, or nullopt if none is complete. kProtocol: a length is 0 or
    /// past the limit. The stream is then unusable, and every further call fails the same way.
    Result<std::optional<std::string>> next();
    /// Bytes held and not yet handed out.
    std::size_t pending() const {
        return buffer_.size() - start_ + (awaited_ > 0 ? kLinkPrefixBytes : 0);
    }
    /// Length of the large frame that is arriving, without its prefix; 0 if there is none.
    std::size_t awaited() const { return awaited_; }
    /// Bytes of memory held for those bytes and for the next ones.
    std::size_t capacity() const { return buffer_.capacity(); }

 private:
    std::string buffer_;
    std::size_t start_ = 0;
    /// Length of the large frame that is being read to the start of the buffer; 0 if there is none.
    std::size_t awaited_ = 0;
    bool broken_ = false;

    std::string take_awaited();
    void await(std::size_t length);
};

}  // namespace cellkeep::protocol
