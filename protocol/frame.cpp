// SPDX-License-Identifier: Apache-2.0
#include "protocol/frame.hpp"

#include "protocol/limits.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace cellkeep::protocol {

namespace {

constexpr std::size_t kWordBytes = 8;
// A frame of n parts has n + 1 offsets: where each part starts, and the end.
constexpr std::size_t kOffsetsMin = kFramePartsMin + 1;
constexpr std::size_t kOffsetsMax = kOffsetsMin + limits::kBuffersMax;

// Byte by byte, so that neither alignment nor the host's byte order matters; compilers make one
// load.
std::uint64_t read_little_endian(std::string_view bytes, std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
        value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    }
    return value;
}

void append_little_endian(std::string& out, std::uint64_t value, std::size_t size) {
    std::array<char, kWordBytes> bytes{};
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<char>(value >> (8 * i) & 0xffU);
    }
    out.append(bytes.data(), size);
}

std::uint64_t offset(std::string_view frame, std::size_t index) {
    return read_little_endian(frame, kWordBytes * (1 + index), kWordBytes);
}

Error bad_frame(std::string_view reason) {
    return {ErrorCode::kProtocol, "frame: " + std::string(reason)};
}

Error past_limit(std::string_view what, std::size_t limit) {
    return {
        ErrorCode::kLimitExceeded,
        "frame: more than " + std::to_string(limit) + " " + std::string(what)};
}

}  // namespace

Result<std::string> encode_frame(std::span<const std::string_view> parts) {
    if (parts.size() < kFramePartsMin) {
        return Error(ErrorCode::kInvalidArgument, "frame: fewer than five parts");
    }
    if (parts.size() - kFramePartsMin > limits::kBuffersMax) {
        return past_limit("buffers", limits::kBuffersMax);
    }
    const std::size_t table_bytes = kWordBytes * (parts.size() + 2);
    std::size_t total = table_bytes;
    for (const std::string_view part : parts) {
        // Compared by subtraction, so that no sum of sizes can wrap.
        if (total > limits::kFrameBytesMax || part.size() > limits::kFrameBytesMax - total) {
            return past_limit("bytes", limits::kFrameBytesMax);
        }
        total += part.size();
    }
    std::string frame;
    frame.reserve(total);
    append_little_endian(frame, parts.size() + 1, kWordBytes);
    std::size_t at = table_bytes;
    append_little_endian(frame, at, kWordBytes);
    for (const std::string_view part : parts) {
        at += part.size();
        append_little_endian(frame, at, kWordBytes);
    }
    for (const std::string_view part : parts) {
        frame += part;
    }
    return frame;
}

Status check_frame(std::string_view frame) {
    if (frame.size() > limits::kFrameBytesMax) {
        return past_limit("bytes", limits::kFrameBytesMax);
    }
    if (frame.size() < kWordBytes) {
        return bad_frame("too short for an offset count");
    }
    const std::uint64_t count = read_little_endian(frame, 0, kWordBytes);
    if (count < kOffsetsMin) {
        return bad_frame("fewer than five parts");
    }
    if (count > kOffsetsMax) {
        return past_limit("buffers", limits::kBuffersMax);
    }
    const std::size_t table_bytes = kWordBytes * (1 + static_cast<std::size_t>(count));
    if (frame.size() < table_bytes) {
        return bad_frame("too short for its offset table");
    }
    if (offset(frame, 0) != table_bytes) {
        return bad_frame("the first part does not follow the offset table");
    }
    // Ascending from the table's end to the frame's end: then every part lies inside the frame.
    std::uint64_t previous = table_bytes;
    for (std::size_t i = 1; i < count; ++i) {
        const std::uint64_t current = offset(frame, i);
        if (current < previous) {
            return bad_frame("the offsets descend");
        }
        if (current > frame.size()) {
            return bad_frame("an offset is past the end");
        }
        previous = current;
    }
    if (previous != frame.size()) {
        return bad_frame("the last offset is not the end");
    }
    return ok();
}

std::size_t frame_part_count(std::string_view frame) {
    return static_cast<std::size_t>(read_little_endian(frame, 0, kWordBytes)) - 1;
}

std::string_view frame_part(std::string_view frame, std::size_t index) {
    const auto begin = static_cast<std::size_t>(offset(frame, index));
    const auto end = static_cast<std::size_t>(offset(frame, index + 1));
    return {frame.data() + begin, end - begin};
}

Result<FrameParts> decode_frame(std::string_view frame) {
    BOOST_OUTCOME_TRY(check_frame(frame));
    FrameParts parts(frame_part_count(frame));
    for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i] = frame_part(frame, i);
    }
    return parts;
}

std::string encode_link_prefix(std::size_t frame_bytes) {
    CELLKEEP_CHECK(frame_bytes > 0 && frame_bytes <= limits::kFrameBytesMax);
    std::string prefix;
    append_little_endian(prefix, frame_bytes, kLinkPrefixBytes);
    return prefix;
}

void LinkDecoder::append(std::string_view bytes) {
    if (broken_) {
        return;  // next() has said so and goes on saying so
    }
    if (start_ > 0 && start_ >= buffer_.size() - start_) {
        // At least as much is gone as remains, so moving the rest is paid for by what was taken.
        buffer_.erase(0, start_);
        start_ = 0;
    }
    buffer_ += bytes;
}

/// Frames at least this large are handed out in the memory in which they came: neither growing nor
/// copying them takes long at once.
constexpr std::size_t kLargeBytes = 64ULL << 10U;

void LinkDecoder::await(std::size_t length) {
    // What moves is at most what one append() brought.
    buffer_.erase(0, start_ + kLinkPrefixBytes);
    start_ = 0;
    awaited_ = length;
    // Memory that is not written to yet costs nothing.
    buffer_.reserve(length);
}

std::string LinkDecoder::take_awaited() {
    std::string rest = buffer_.substr(awaited_);
    std::string frame = std::exchange(buffer_, std::move(rest));
    frame.resize(std::exchange(awaited_, 0));
    return frame;
}

Result<std::optional<std::string>> LinkDecoder::next() {
    if (broken_) {
        return Error(ErrorCode::kProtocol, "link: a frame length is 0 or past the limit");
    }
    if (awaited_ > 0) {
        return buffer_.size() < awaited_ ? std::optional<std::string>()
                                         : std::optional<std::string>(take_awaited());
    }
    if (pending() < kLinkPrefixBytes) {
        return std::optional<std::string>();
    }
    const auto length =
        static_cast<std::size_t>(read_little_endian(buffer_, start_, kLinkPrefixBytes));
    if (length == 0 || length > limits::kFrameBytesMax) {
        broken_ = true;
        start_ = 0;
        std::string().swap(buffer_);
        return next();
    }
    if (pending() - kLinkPrefixBytes < length) {
        if (length >= kLargeBytes) {
            await(length);
        }
        return std::optional<std::string>();
    }
    start_ += kLinkPrefixBytes;
    std::string frame(buffer_, start_, length);
    start_ += length;
    if (start_ == buffer_.size()) {
        start_ = 0;
        if (buffer_.capacity() > limits::kLinkBufferKeptBytesMax) {
            std::string().swap(buffer_);
        } else {
            buffer_.clear();
        }
    }
    return std::optional<std::string>(std::move(frame));
}

}  // namespace cellkeep::protocol
