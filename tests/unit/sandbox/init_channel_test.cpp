// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/init_channel.hpp"

#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::sandbox {
namespace {

using namespace std::chrono_literals;

/// The channel, and its other end in the hands of the test, which is pid 1 here.
struct FakeInit {
    FakeInit() {
        auto pair = make_socket_pair(SOCK_SEQPACKET);
        REQUIRE(pair.has_value());
        REQUIRE(set_nonblocking(pair.value().first.get()).has_value());
        REQUIRE(set_nonblocking(pair.value().second.get()).has_value());
        channel = InitChannel(std::move(pair.value().first));
        far = std::move(pair.value().second);
    }

    void reply(const ReplyMessage& message, const std::vector<int>& fds = {}) const {
        REQUIRE(send_with_fds(far.get(), std::as_bytes(std::span(&message, 1)), fds).has_value());
    }
    std::uint32_t ask() {
        const auto asked = channel.send({}, "", {});
        REQUIRE(asked.has_value());
        return asked.value();
    }

    InitChannel channel{UniqueFd()};
    UniqueFd far;
};

TEST_CASE("a request arrives with its text, its descriptors and a number of its own", "[init]") {
    FakeInit init;
    RequestHeader header;
    header.kind = RequestKind::kStart;
    header.worker_id = 7;
    const auto first = init.channel.send(header, std::string("/\0/bin/x\0", 9), {});
    REQUIRE(first.has_value());
    const std::vector<int> fds{STDIN_FILENO, STDERR_FILENO};
    const auto second = init.channel.send(header, "", fds);
    REQUIRE(second.has_value());
    CHECK(second.value() != first.value());

    std::string bytes(kRequestBytesMax, '\0');
    auto received = receive_with_fds(
        init.far.get(), std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
    REQUIRE(received.has_value());
    REQUIRE(received.value().bytes == sizeof(header) + 9);
    RequestHeader arrived;
    std::memcpy(&arrived, bytes.data(), sizeof(arrived));
    CHECK(arrived.worker_id == 7);
    CHECK(arrived.sequence == first.value());
    CHECK(arrived.text_bytes == 9);
    CHECK(received.value().fds.empty());
    received = receive_with_fds(
        init.far.get(), std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
    REQUIRE(received.has_value());
    CHECK(received.value().fds.size() == 2);
}

TEST_CASE("a reply is taken when it is there, with its descriptors", "[init]") {
    FakeInit init;
    const std::uint32_t asked = init.ask();
    auto taken = init.channel.take();
    REQUIRE(taken.has_value());
    CHECK_FALSE(taken.value().has_value());
    init.reply({asked, 0, SetupStep::kServe}, {STDIN_FILENO});
    taken = init.channel.take();
    REQUIRE(taken.has_value());
    REQUIRE(taken.value().has_value());
    CHECK(taken.value()->message.sequence == asked);
    CHECK(taken.value()->fds.size() == 1);
    taken = init.channel.take();
    REQUIRE(taken.has_value());
    CHECK_FALSE(taken.value().has_value());
}

TEST_CASE("a pid 1 that reads nothing does not hold the server up", "[init]") {
    FakeInit init;
    const std::string text(kStartTextBytesMax, 'x');
    Result<std::uint32_t> sent = init.channel.send({}, text, {});
    REQUIRE(sent.has_value());
    while (sent.has_value()) {
        sent = init.channel.send({}, text, {});
    }
    CHECK(sent.error().code() == ErrorCode::kUnavailable);
    const auto waited = init.channel.wait(1, 0ms);
    REQUIRE(waited.has_error());
    CHECK(waited.error().code() == ErrorCode::kTimeout);
}

TEST_CASE("a wait takes the reply to its own request", "[init]") {
    FakeInit init;
    const std::uint32_t first = init.ask();
    const std::uint32_t second = init.ask();
    init.reply({first, 1, SetupStep::kServe});
    auto waited = init.channel.wait(second, 0ms);
    REQUIRE(waited.has_error());
    CHECK(waited.error().code() == ErrorCode::kTimeout);
    init.reply({second, 2, SetupStep::kServe});
    waited = init.channel.wait(second, 0ms);
    REQUIRE(waited.has_value());
    CHECK(waited.value().message.error == 2);
}

TEST_CASE("a pid 1 that is gone is an error, not a missing reply", "[init]") {
    FakeInit init;
    SECTION("it has read all requests") {}
    SECTION("its last words are cut short") {
        REQUIRE(::send(init.far.get(), "x", 1, 0) == 1);
    }
    init.far.reset();
    const auto taken = init.channel.take();
    REQUIRE(taken.has_error());
    CHECK(taken.error().code() == ErrorCode::kUnavailable);
    const auto waited = init.channel.wait(1, 1h);
    REQUIRE(waited.has_error());
    CHECK(waited.error().code() == ErrorCode::kUnavailable);
    CHECK(init.channel.send({}, "", {}).has_error());
}

}  // namespace
}  // namespace cellkeep::sandbox
