// SPDX-License-Identifier: Apache-2.0
#include "protocol/frame.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/protocol/frame_bytes.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using cellkeep::ErrorCode;
using cellkeep::protocol::encode_link_prefix;
using cellkeep::protocol::kLinkPrefixBytes;
using cellkeep::protocol::LinkDecoder;
using cellkeep::test::little_endian;

namespace limits = cellkeep::limits;

namespace {

std::vector<std::string> take_all(LinkDecoder& decoder) {
    std::vector<std::string> frames;
    while (true) {
        auto next = decoder.next();
        REQUIRE(next.has_value());
        if (!next.value()) {
            return frames;
        }
        frames.push_back(*std::move(next).value());
    }
}

void check_broken(LinkDecoder& decoder) {
    const auto next = decoder.next();
    REQUIRE(next.has_error());
    CHECK(next.error().code() == ErrorCode::kProtocol);
}

}  // namespace

TEST_CASE("the link prefix is a little-endian u32", "[protocol][link]") {
    CHECK(encode_link_prefix(1) == std::string("\x01\0\0\0", 4));
    CHECK(encode_link_prefix(0x01020304) == std::string("\x04\x03\x02\x01", 4));
    CHECK(encode_link_prefix(limits::kFrameBytesMax) == std::string("\0\0\0\x08", 4));
}

TEST_CASE("a stream is cut into the same frames however it arrives", "[protocol][link]") {
    const std::vector<std::string> frames{
        "a", std::string(3, '\0'), std::string(100'000, 'x'), "bc", std::string(70'000, 'y')};
    std::string stream;
    for (const std::string& frame : frames) {
        stream += encode_link_prefix(frame.size()) + frame;
    }
    const std::size_t chunk_bytes = GENERATE(1U, 2U, 3U, 7U, 4096U, 65'537U, 1'000'000U);
    CAPTURE(chunk_bytes);
    LinkDecoder decoder;
    std::vector<std::string> received;
    for (std::size_t at = 0; at < stream.size(); at += chunk_bytes) {
        decoder.append(std::string_view(stream).substr(at, chunk_bytes));
        auto complete = take_all(decoder);
        received.insert(received.end(), complete.begin(), complete.end());
    }
    CHECK(received == frames);
    CHECK(decoder.pending() == 0);
}

TEST_CASE("half a frame is nothing yet", "[protocol][link]") {
    LinkDecoder decoder;
    CHECK(take_all(decoder).empty());
    decoder.append(std::string("\x03\0\0", 3));
    CHECK(take_all(decoder).empty());
    decoder.append(std::string("\0ab", 3));
    CHECK(take_all(decoder).empty());
    CHECK(decoder.pending() == kLinkPrefixBytes + 2);
    decoder.append("c");
    CHECK(take_all(decoder) == std::vector<std::string>{"abc"});
}

TEST_CASE("frames that came before a bad length are still handed out", "[protocol][link]") {
    LinkDecoder decoder;
    decoder.append(encode_link_prefix(2) + "ok" + little_endian(0, 4) + "rest");
    auto first = decoder.next();
    REQUIRE(first.has_value());
    CHECK(first.value() == "ok");
    check_broken(decoder);
}

TEST_CASE("a length of 0 breaks the stream for good", "[protocol][link]") {
    LinkDecoder decoder;
    decoder.append(little_endian(0, 4));
    check_broken(decoder);
    CHECK(decoder.pending() == 0);
    decoder.append(encode_link_prefix(2) + "ok");
    check_broken(decoder);
    CHECK(decoder.pending() == 0);
}

TEST_CASE("limits::kFrameBytesMax is the longest frame of the link", "[protocol][link][limits]") {
    SECTION("at the limit the frame is awaited, and arrives") {
        LinkDecoder decoder;
        decoder.append(little_endian(limits::kFrameBytesMax, 4));
        CHECK(take_all(decoder).empty());
        const std::string bytes(limits::kFrameBytesMax, 'z');
        decoder.append(bytes);
        const auto frames = take_all(decoder);
        REQUIRE(frames.size() == 1);
        CHECK((frames[0] == bytes));
    }
    SECTION("one past it breaks the stream before any of it is awaited") {
        LinkDecoder decoder;
        decoder.append(little_endian(limits::kFrameBytesMax + 1, 4));
        check_broken(decoder);
    }
    SECTION("so does the largest number") {
        LinkDecoder decoder;
        decoder.append("\xff\xff\xff\xff");
        check_broken(decoder);
    }
}

TEST_CASE(
    "limits::kLinkBufferKeptBytesMax is what an empty decoder keeps", "[protocol][link][limits]") {
    // A small frame behind a large one, so that the large one is not handed out in the buffer.
    const auto grow_to = [](LinkDecoder& decoder, std::size_t bytes) {
        const std::string small = encode_link_prefix(1) + "s";
        const std::size_t large_bytes = bytes - kLinkPrefixBytes - small.size();
        decoder.append(encode_link_prefix(large_bytes) + std::string(large_bytes, 'l') + small);
        CHECK(decoder.capacity() >= bytes);
        CHECK(take_all(decoder).size() == 2);
        CHECK(decoder.pending() == 0);
    };
    LinkDecoder decoder;
    grow_to(decoder, limits::kLinkBufferKeptBytesMax);
    CHECK(decoder.capacity() == limits::kLinkBufferKeptBytesMax);
    grow_to(decoder, limits::kLinkBufferKeptBytesMax + 1);
    CHECK(decoder.capacity() < 1024);
    decoder.append(encode_link_prefix(2) + "ok");
    CHECK(take_all(decoder) == std::vector<std::string>{"ok"});
}

TEST_CASE("many small frames do not pile up in the decoder", "[protocol][link]") {
    LinkDecoder decoder;
    const std::string frame = encode_link_prefix(10) + "0123456789";
    const std::string half_more = frame + frame.substr(0, 7);
    for (int i = 0; i < 10'000; ++i) {
        decoder.append(half_more);
        CHECK(take_all(decoder).size() == 1);
        CHECK(decoder.pending() == 7);
        decoder.append(std::string_view(frame).substr(7));
        CHECK(take_all(decoder).size() == 1);
        CHECK(decoder.pending() == 0);
    }
}
