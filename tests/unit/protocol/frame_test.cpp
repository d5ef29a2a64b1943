// SPDX-License-Identifier: Apache-2.0
#include "protocol/frame.hpp"

#include "protocol/limits.hpp"
#include "tests/unit/protocol/frame_bytes.hpp"

#include <catch2/catch.hpp>

#include <limits>
#include <string>

using Catch::Matchers::Contains;
using cellkeep::ErrorCode;
using cellkeep::protocol::decode_frame;
using cellkeep::protocol::encode_frame;
using cellkeep::protocol::FrameParts;
using cellkeep::test::offsets_of;
using cellkeep::test::raw_frame;
using cellkeep::test::right_frame;

namespace limits = cellkeep::limits;

namespace {

// shell, header, parent_header, metadata, content, one buffer: the bytes that jupyter_server's
// serialize_msg_to_ws_v1 makes of them.
const std::string kGolden =
    std::string("\x07\0\0\0\0\0\0\0", 8) +  // seven offsets follow
    std::string("\x40\0\0\0\0\0\0\0", 8) +  // 64: the channel starts after the table
    std::string("\x45\0\0\0\0\0\0\0", 8) +  // 69: header
    std::string("\x62\0\0\0\0\0\0\0", 8) +  // 98: parent_header
    std::string("\x64\0\0\0\0\0\0\0", 8) +  // 100: metadata
    std::string("\x66\0\0\0\0\0\0\0", 8) +  // 102: content
    std::string("\x6d\0\0\0\0\0\0\0", 8) +  // 109: buffer
    std::string("\x6f\0\0\0\0\0\0\0", 8) +  // 111: the end
    R"(shell{"msg_id":"a","msg_type":"b"}{}{}{"x":1})" + std::string("\0\xff", 2);

const FrameParts kGoldenParts{
    "shell", R"({"msg_id":"a","msg_type":"b"})", "{}", "{}", R"({"x":1})", {"\0\xff", 2}};

void check_frame_refused(std::string_view frame, ErrorCode code, const std::string& reason) {
    CAPTURE(reason);
    const auto parts = decode_frame(frame);
    REQUIRE(parts.has_error());
    CHECK(parts.error().code() == code);
    CHECK_THAT(parts.error().message(), Contains(reason));
}

}  // namespace

TEST_CASE("a frame has the bytes that jupyter_server makes", "[protocol][frame]") {
    const auto frame = encode_frame(kGoldenParts);
    REQUIRE(frame.has_value());
    CHECK(frame.value() == kGolden);
    const auto parts = decode_frame(kGolden);
    REQUIRE(parts.has_value());
    CHECK(parts.value() == kGoldenParts);
}

TEST_CASE("every cut of a frame is refused", "[protocol][frame]") {
    for (std::size_t size = 0; size < kGolden.size(); ++size) {
        CAPTURE(size);
        CHECK(decode_frame(std::string_view(kGolden).substr(0, size)).has_error());
    }
    check_frame_refused(kGolden + "x", ErrorCode::kProtocol, "not the end");
}

TEST_CASE("a wrong offset count is refused", "[protocol][frame]") {
    const auto offsets = offsets_of({5, 2, 2, 2, 2});
    const std::string payload = "shell{}{}{}{}";
    REQUIRE(decode_frame(raw_frame(6, offsets, payload)).has_value());
    check_frame_refused(raw_frame(0, offsets, payload), ErrorCode::kProtocol, "fewer than five");
    check_frame_refused(raw_frame(1, {16}, ""), ErrorCode::kProtocol, "fewer than five");
    check_frame_refused(
        raw_frame(5, offsets_of({5, 2, 2, 2}), "shell{}{}{}"),
        ErrorCode::kProtocol,
        "fewer than five");
    check_frame_refused(raw_frame(7, offsets, payload), ErrorCode::kProtocol, "does not follow");
    check_frame_refused(
        raw_frame(std::numeric_limits<std::uint64_t>::max(), offsets, payload),
        ErrorCode::kLimitExceeded,
        "buffers");
    // 8 * (1 + count) wraps round to a small number.
    check_frame_refused(
        raw_frame(std::uint64_t{1} << 61U, offsets, payload), ErrorCode::kLimitExceeded, "buffers");
    check_frame_refused(raw_frame(1030, offsets, payload), ErrorCode::kProtocol, "offset table");
}

TEST_CASE("wrong offsets are refused before a part is touched", "[protocol][frame]") {
    const std::string payload = "shell{}{}{}{}";
    const auto good = offsets_of({5, 2, 2, 2, 2});
    const auto with = [&](std::size_t index, std::uint64_t value) {
        auto offsets = good;
        offsets[index] = value;
        return raw_frame(6, offsets, payload);
    };
    check_frame_refused(with(0, good[0] - 1), ErrorCode::kProtocol, "does not follow");
    check_frame_refused(with(0, good[0] + 1), ErrorCode::kProtocol, "does not follow");
    check_frame_refused(with(0, 0), ErrorCode::kProtocol, "does not follow");
    check_frame_refused(with(2, good[1] - 1), ErrorCode::kProtocol, "descend");
    check_frame_refused(with(1, 0), ErrorCode::kProtocol, "descend");
    check_frame_refused(with(3, good[4] + 1), ErrorCode::kProtocol, "descend");
    check_frame_refused(with(4, good[5] + 1), ErrorCode::kProtocol, "past the end");
    // begin + length would wrap in 64 bits.
    check_frame_refused(
        with(1, std::numeric_limits<std::uint64_t>::max()), ErrorCode::kProtocol, "past the end");
    check_frame_refused(with(4, std::uint64_t{1} << 63U), ErrorCode::kProtocol, "past the end");
    check_frame_refused(with(5, good[5] - 1), ErrorCode::kProtocol, "not the end");
    check_frame_refused(with(5, good[5] + 1), ErrorCode::kProtocol, "past the end");
}

TEST_CASE("empty parts are parts", "[protocol][frame]") {
    const std::string frame = right_frame({"", "", "", "", "", ""});
    const auto parts = decode_frame(frame);
    REQUIRE(parts.has_value());
    CHECK(parts.value() == FrameParts(6));
}

TEST_CASE("fewer than five parts are not encoded", "[protocol][frame]") {
    for (std::size_t count = 0; count < cellkeep::protocol::kFramePartsMin; ++count) {
        const auto frame = encode_frame(FrameParts(count, "{}"));
        REQUIRE(frame.has_error());
        CHECK(frame.error().code() == ErrorCode::kInvalidArgument);
    }
}

TEST_CASE("limits::kBuffersMax holds in both directions", "[protocol][frame][limits]") {
    const std::size_t parts_max = cellkeep::protocol::kFramePartsMin + limits::kBuffersMax;
    const auto frame = encode_frame(FrameParts(parts_max, "{}"));
    REQUIRE(frame.has_value());
    const auto parts = decode_frame(frame.value());
    REQUIRE(parts.has_value());
    CHECK(parts.value().size() == parts_max);

    const auto one_more = encode_frame(FrameParts(parts_max + 1, "{}"));
    REQUIRE(one_more.has_error());
    CHECK(one_more.error().code() == ErrorCode::kLimitExceeded);
    check_frame_refused(
        right_frame(std::vector<std::string>(parts_max + 1, "{}")),
        ErrorCode::kLimitExceeded,
        "buffers");
}

TEST_CASE("limits::kFrameBytesMax holds in both directions", "[protocol][frame][limits]") {
    const std::size_t table_bytes = 8 * 7;
    const std::string bytes(limits::kFrameBytesMax - table_bytes + 1, '\0');
    FrameParts parts(5);
    parts[4] = std::string_view(bytes).substr(1);
    auto frame = encode_frame(parts);
    REQUIRE(frame.has_value());
    CHECK(frame.value().size() == limits::kFrameBytesMax);
    CHECK(decode_frame(frame.value()).has_value());

    parts[4] = bytes;
    const auto one_more = encode_frame(parts);
    REQUIRE(one_more.has_error());
    CHECK(one_more.error().code() == ErrorCode::kLimitExceeded);
    frame.value() += '\0';
    check_frame_refused(frame.value(), ErrorCode::kLimitExceeded, "bytes");
}

TEST_CASE("part sizes whose sum would wrap are not encoded", "[protocol][frame]") {
    // Never read: the sizes are refused first.
    const std::string_view huge("", std::numeric_limits<std::size_t>::max() / 2);
    const auto frame = encode_frame(FrameParts(5, huge));
    REQUIRE(frame.has_error());
    CHECK(frame.error().code() == ErrorCode::kLimitExceeded);
}
