// SPDX-License-Identifier: Apache-2.0
#include "protocol/limits.hpp"
#include "tests/unit/kernels/link_pair.hpp"

#include <array>
#include <thread>

namespace cellkeep::kernels {

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

}  // namespace cellkeep::kernels
