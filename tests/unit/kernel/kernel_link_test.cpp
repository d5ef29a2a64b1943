// SPDX-License-Identifier: Apache-2.0
//
// The server's end of the link against a peer that does what a hostile kernel could do.
#include "kernel-manager/kernel/link/kernel_link.hpp"

#include "protocol/frame.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"
#include "tests/unit/kernel/link_harness.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

using cellkeep::Error;
using cellkeep::ErrorCode;
using cellkeep::UniqueFd;
using cellkeep::write_all;
using cellkeep::protocol::Channel;
using cellkeep::protocol::make_header;
using cellkeep::protocol::Message;
using cellkeep::session::FrameBounds;
using cellkeep::session::FrameMemory;
using cellkeep::session::KernelLink;
using cellkeep::test::LinkHarness;
using cellkeep::test::on_wire;
using cellkeep::test::stream_text;

TEST_CASE("messages arrive whole and in order however the bytes are cut", "[session][link]") {
    LinkHarness harness;
    const std::string bytes = on_wire(stream_text("one")) + on_wire(stream_text("two"));
    for (const char byte : bytes) {
        harness.say({&byte, 1});
        harness.io.poll();
    }
    REQUIRE(harness.received.size() == 2);
    CHECK(harness.received[0].parse_content().value()["text"] == "one");
    CHECK(harness.received[1].parse_content().value()["text"] == "two");
}

TEST_CASE("a kernel that closes is reported once, after its last words", "[session][link]") {
    LinkHarness harness;
    harness.say(on_wire(stream_text("last")));
    harness.peer.reset();
    harness.run_to_close();
    harness.io.poll();
    CHECK(harness.received.size() == 1);
    CHECK(harness.closings.size() == 1);
}

TEST_CASE("garbage on the link closes it with a reason", "[session][link]") {
    const std::string frame(stream_text("x").frame());
    const auto [name, bytes] = GENERATE_COPY(table<std::string, std::string>(
        {{"a length of zero", std::string(4, '\0')},
         {"a length past the bound", std::string("\xff\xff\xff\xff")},
         {"a frame that is no frame", std::string("\x05\0\0\0hello", 9)},
         {"an offset table that lies", std::string("\x10\0\0\0", 4) + std::string(16, '\xff')},
         {"a frame cut short inside its prefix's promise",
          cellkeep::protocol::encode_link_prefix(frame.size() - 1) +
              frame.substr(0, frame.size() - 1)}}));
    CAPTURE(name);
    LinkHarness harness;
    harness.say(bytes);
    harness.run_to_close();
    CHECK(harness.received.empty());
    CHECK(harness.closings.size() == 1);
}

TEST_CASE("a kernel that closes in the middle of a frame is a closed link", "[session][link]") {
    LinkHarness harness;
    harness.say(on_wire(stream_text("x")).substr(0, 20));
    harness.peer.reset();
    harness.run_to_close();
    CHECK(harness.received.empty());
}

TEST_CASE(
    "limits::kLinkFrameWaitMax: a frame whose rest does not come breaks the link",
    "[session][link][limits]") {
    const std::string wire = on_wire(stream_text("x"));
    const std::size_t begun = GENERATE(as<std::size_t>(), 1, 4, 20);
    LinkHarness harness({.wait = std::chrono::milliseconds(0)});
    // The positive control: whole frames, and the time between them, have no deadline.
    harness.say(wire);
    harness.io.poll();
    harness.say(wire);
    harness.io.poll();
    CHECK(harness.received.size() == 2);
    CHECK(harness.closings.empty());
    harness.say(wire.substr(0, begun));
    harness.run_to_close();
    CHECK_THAT(harness.closings[0], Catch::Contains("the rest of a frame did not come"));
    CHECK(harness.received.size() == 2);
}

TEST_CASE(
    "limits::kLinkFrameBytesPerSecond: what has arrived of a frame earns time for its rest",
    "[session][link][limits]") {
    LinkHarness harness({.wait = std::chrono::milliseconds(0), .bytes_per_second = 1});
    const std::string wire = on_wire(stream_text("x"));
    harness.say(wire.substr(0, wire.size() - 1));
    harness.io.poll();
    CHECK(harness.closings.empty());
    harness.say(wire.substr(wire.size() - 1));
    while (harness.received.empty()) {
        harness.io.run_one();
    }
    CHECK(harness.closings.empty());
}

TEST_CASE(
    "limits::kLinkFrameUnclaimedBytesMax: a larger frame is read when there is memory for it",
    "[session][link][limits]") {
    constexpr std::size_t kUnclaimed = cellkeep::limits::kLinkFrameUnclaimedBytesMax;
    LinkHarness harness({}, cellkeep::limits::kFrameBytesMax);
    auto& memory = boost::asio::use_service<FrameMemory>(harness.io);
    FrameMemory::Claim other(memory, [] {});
    REQUIRE(other.take(cellkeep::limits::kFrameBytesMax));
    const auto say_all = [&](std::size_t bytes) {
        const std::string wire = on_wire(stream_text(std::string(bytes, 'x')));
        std::size_t said = 0;
        while (said < wire.size() && memory.waiting() == 0) {
            const ssize_t wrote = ::send(
                harness.peer.get(),
                wire.data() + said,
                wire.size() - said,
                MSG_DONTWAIT | MSG_NOSIGNAL);
            said += wrote > 0 ? static_cast<std::size_t>(wrote) : 0;
            harness.io.poll();
            harness.io.restart();
        }
        return wire.substr(said);
    };
    // The positive control: a frame of this size does not ask.
    CHECK(say_all(kUnclaimed - 1000).empty());
    CHECK_FALSE(harness.received.empty());
    harness.received.clear();
    const std::string rest = say_all(kUnclaimed + 1);
    REQUIRE(memory.waiting() == 1);
    harness.io.poll();
    CHECK(harness.received.empty());
    other.release();
    CHECK(memory.used() > kUnclaimed);
    std::size_t said = 0;
    while (said < rest.size() || harness.received.empty()) {
        const ssize_t wrote = ::send(
            harness.peer.get(),
            rest.data() + said,
            rest.size() - said,
            MSG_DONTWAIT | MSG_NOSIGNAL);
        said += wrote > 0 ? static_cast<std::size_t>(wrote) : 0;
        harness.io.poll_one();
        harness.io.restart();
    }
    while (memory.used() > 0) {  // until the last piece of its text has been handed out
        harness.io.run_one();
        harness.io.restart();
    }
    CHECK(harness.closings.empty());
}

TEST_CASE("a paused link reads nothing and loses nothing", "[session][link]") {
    LinkHarness harness;
    harness.link->pause_reading();
    harness.io.poll();
    harness.say(on_wire(stream_text("held")));
    harness.io.poll();
    CHECK(harness.received.empty());
    harness.link->resume_reading();
    harness.io.restart();  // poll() above ran out of work
    while (harness.received.empty()) {
        harness.io.run_one();
    }
    CHECK(harness.received.size() == 1);
}

TEST_CASE("what waits for a kernel that does not read is bounded", "[session][link]") {
    LinkHarness harness;
    const Message big = stream_text(std::string(60ULL << 20U, 'x'));
    std::size_t queued = 0;
    while (true) {
        const auto sent = harness.link->send(big);
        if (sent.has_error()) {
            CHECK(sent.error().code() == ErrorCode::kLimitExceeded);
            break;
        }
        queued += big.frame().size();
        REQUIRE(queued <= cellkeep::limits::kLinkWriteQueueBytesMax + big.frame().size());
    }
    CHECK(queued > cellkeep::limits::kLinkWriteQueueBytesMax - 2 * big.frame().size());
}

TEST_CASE("a kernel that reads late and little gets every byte in order", "[session][link]") {
    LinkHarness harness;
    std::string expected;
    for (const std::size_t size : {std::size_t{1}, std::size_t{3} << 20U, std::size_t{2}}) {
        const Message one = stream_text(std::string(size, 'x'));
        expected += on_wire(one);
        REQUIRE(harness.link->send(one).has_value());
    }
    std::string got;
    // Pieces that end inside lengths and inside frames.
    std::array<char, 4099> piece{};
    while (got.size() < expected.size()) {
        harness.io.poll();
        const ssize_t count = ::read(harness.peer.get(), piece.data(), piece.size());
        REQUIRE(count > 0);
        got.append(piece.data(), static_cast<std::size_t>(count));
    }
    CHECK(got == expected);
}

TEST_CASE("nothing is sent or heard after close", "[session][link]") {
    LinkHarness harness;
    harness.say(on_wire(stream_text("x")));
    harness.link->close();
    harness.io.poll();
    CHECK(harness.received.empty());
    CHECK(harness.closings.empty());
    const auto sent = harness.link->send(stream_text("y"));
    REQUIRE(sent.has_error());
    CHECK(sent.error().code() == ErrorCode::kConflict);
}

TEST_CASE(
    "limits::kLinkTurnBytesMax: a flooding kernel leaves every other its turn",
    "[session][link][limits]") {
    LinkHarness harness;
    const std::size_t most = cellkeep::limits::kLinkTurnBytesMax;
    // One message of many turns, then a small one.
    const std::string wire =
        on_wire(stream_text(std::string(16 * most, 'x'))) + on_wire(stream_text("end"));
    std::size_t turns = 0;  // of other handlers
    std::function<void()> other = [&] {
        ++turns;
        if (harness.received.size() < 1000) {
            boost::asio::post(harness.io, other);
        }
    };
    boost::asio::post(harness.io, other);
    std::size_t said = 0;
    std::size_t before = 0;  // the last byte was said
    while (harness.received.empty() || harness.received.back().content_json().size() > 100) {
        std::size_t count = 0;
        const std::string_view rest = std::string_view(wire).substr(said);
        if (!rest.empty()) {
            const ssize_t wrote =
                ::send(harness.peer.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            count = wrote > 0 ? static_cast<std::size_t>(wrote) : 0;
        }
        said += count;
        before = count > 0 ? turns : before;
        harness.io.poll_one();
        harness.io.restart();
    }
    // 16 turns for scanning, 8 for the pieces that are handed out.
    CHECK(turns - before >= 20);
    std::string text;
    for (const Message& piece : harness.received) {
        text += piece.parse_content().value()["text"].get<std::string>();
    }
    CHECK((text == std::string(16 * most, 'x') + "end"));
}

TEST_CASE(
    "limits::kLinkDrainFrameBytesMax: of a dead kernel a longer frame is passed on unread",
    "[session][link][limits]") {
    LinkHarness harness;
    const auto display = [](std::size_t bytes) {
        return Message::make(
            Channel::kIopub,
            make_header("display_data", "s", "u"),
            nlohmann::json::object(),
            {{"data", {{"text/plain", std::string(bytes, 'x')}}}});
    };
    const std::size_t most = cellkeep::limits::kLinkDrainFrameBytesMax;
    const std::string wire = on_wire(display(most - 1000)) + on_wire(display(most + 1));
    std::size_t said = 0;
    // The last piece stays in the socket until the link is drained.
    while (said < wire.size()) {
        const std::string_view rest = std::string_view(wire).substr(said, 4096);
        const ssize_t wrote =
            ::send(harness.peer.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        said += wrote > 0 ? static_cast<std::size_t>(wrote) : 0;
        if (said < wire.size()) {
            harness.io.poll();
            harness.io.restart();
        }
    }
    harness.link->drain();
    REQUIRE(harness.received.size() == 2);
    CHECK(harness.received[0].outline().valid);
    CHECK_FALSE(harness.received[1].outline().valid);
    CHECK(harness.received[1].content_json().size() > most);
}
