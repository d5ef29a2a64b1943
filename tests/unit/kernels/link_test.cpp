// SPDX-License-Identifier: Apache-2.0
#include "protocol/limits.hpp"
#include "tests/unit/kernels/link_pair.hpp"

#include <sys/ioctl.h>

#include <array>
#include <thread>

namespace cellkeep::kernels {

using protocol::Channel;

TEST_CASE("a message crosses the link unchanged, also a large one", "[kernels][link]") {
    LinkPair pair;
    const std::string text(3U << 20U, 'x');
    std::thread sender([&] {
        (void)pair.send(protocol::Channel::kShell, "large", {{"text", text}});
    });
    const auto message = pair.kernel.read();
    sender.join();
    REQUIRE(message);
    REQUIRE(message.value());
    CHECK(message.value()->header().msg_type == "large");
    CHECK(message.value()->parse_content().value()["text"] == text);
}

TEST_CASE(
    "a peer that closes between frames is the end, inside one a protocol error",
    "[kernels][link]") {
    auto [kernel_end, server_end] = make_pair();
    Link kernel(std::move(kernel_end));
    const std::string bytes = GENERATE(
        as<std::string>(),
        "",
        std::string("\x05", 1),
        protocol::encode_link_prefix(9) + "12345678");
    REQUIRE(write_all(server_end.get(), bytes));
    server_end = UniqueFd();
    const auto message = kernel.read();
    if (bytes.empty()) {
        REQUIRE(message);
        CHECK_FALSE(message.value());
    } else {
        REQUIRE_FALSE(message);
        CHECK(message.error().code() == ErrorCode::kProtocol);
    }
}

TEST_CASE("a frame of no bytes, past the limit, or of garbage is refused", "[kernels][link]") {
    auto [kernel_end, server_end] = make_pair();
    Link kernel(std::move(kernel_end));
    const auto past = static_cast<std::uint32_t>(limits::kFrameBytesMax + 1);
    std::string past_prefix;
    for (unsigned shift = 0; shift < 32; shift += 8) {
        past_prefix.push_back(static_cast<char>((past >> shift) & 0xFFU));
    }
    const std::string bytes = GENERATE_COPY(
        as<std::string>(),
        std::string(4, '\0'),
        past_prefix,
        protocol::encode_link_prefix(8) + "garbage!");
    REQUIRE(write_all(server_end.get(), bytes));
    const auto message = kernel.read();
    REQUIRE_FALSE(message);
    const ErrorCode code = message.error().code();
    CHECK((code == ErrorCode::kProtocol || code == ErrorCode::kLimitExceeded));
}

TEST_CASE("frames of several threads do not mix", "[kernels][link]") {
    LinkPair pair;
    constexpr int kThreads = 4;
    constexpr int kMessages = 200;
    std::array<std::thread, kThreads> threads;
    for (std::thread& thread : threads) {
        thread = std::thread([&] {
            const std::string content = R"({"text": ")" + std::string(5000, 'y') + "\"}";
            for (int index = 0; index < kMessages; ++index) {
                (void)pair.outbox.publish({.type = "stream", .content = content});
            }
        });
    }
    for (int index = 0; index < kThreads * kMessages; ++index) {
        CHECK(pair.sent_content()["text"].get<std::string>().size() == 5000);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

TEST_CASE("sending to a peer that is gone, or after abandon, is unavailable", "[kernels][link]") {
    LinkPair pair;
    SECTION("gone") {
        pair.server.abandon();
    }
    SECTION("abandoned") {
        pair.kernel.abandon();
    }
    (void)pair.outbox.publish({.type = "first"});
    const Status sent = pair.outbox.publish({.type = "second"});
    REQUIRE_FALSE(sent);
    CHECK(sent.error().code() == ErrorCode::kUnavailable);
}

TEST_CASE("a message past the frame's limit is refused and nothing is sent", "[kernels][outbox]") {
    LinkPair pair;
    const std::string content = "{\"text\": \"" + std::string(limits::kFrameBytesMax, 'z') + "\"}";
    const Status sent = pair.outbox.publish({.type = "stream", .content = content});
    REQUIRE_FALSE(sent);
    CHECK(sent.error().code() == ErrorCode::kLimitExceeded);
    REQUIRE(pair.outbox.publish({.type = "next"}));
    CHECK(pair.sent().header().msg_type == "next");
}

TEST_CASE("a frame that another follows waits for it, and order is kept", "[kernels][link]") {
    LinkPair pair;
    const auto send = [&](std::string_view type, More more) {
        return pair.outbox.send(Channel::kIopub, "{}", {.type = type}, more).has_value();
    };
    const auto waiting = [&] {
        int bytes = -1;
        REQUIRE(::ioctl(pair.server.fd(), FIONREAD, &bytes) == 0);
        return bytes;
    };
    CHECK(send("first", More::kYes));
    CHECK(send("second", More::kYes));
    CHECK(waiting() == 0);
    CHECK(send("third", More::kNo));
    CHECK(waiting() > 0);
    for (const char* type : {"first", "second", "third"}) {
        CHECK(pair.sent().header().msg_type == type);
    }
    CHECK(send("alone", More::kYes));
    CHECK(pair.outbox.flush());
    CHECK(pair.sent().header().msg_type == "alone");
    CHECK(pair.outbox.flush());
    CHECK(waiting() == 0);
}

TEST_CASE("no more than a bound waits for the next frame", "[kernels][link]") {
    LinkPair pair;
    const std::string large = R"({"text": ")" + std::string(kLinkHeldBytesMax, 'x') + "\"}";
    const auto send = [&](std::string_view content) {
        return pair.outbox
            .send(Channel::kIopub, "{}", {.type = "stream", .content = content}, More::kYes)
            .has_value();
    };
    CHECK(send("{}"));
    CHECK(send(large));  // and the first before it
    CHECK(pair.sent_content().empty());
    CHECK(pair.sent_content()["text"].get<std::string>().size() == kLinkHeldBytesMax);
}

}  // namespace cellkeep::kernels
