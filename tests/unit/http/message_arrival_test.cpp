// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/websocket/message_arrival.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace cellkeep::http {
namespace {

constexpr std::size_t kFirst = MessageArrival::kFirstBytes;

/// So much comes at a time, up to the end. Returns the sizes of the rooms that were made.
std::vector<std::size_t> arrive(
    MessageArrival& arrival, std::string message, std::size_t at_a_time) {
    std::vector<std::size_t> rooms;
    while (!message.empty()) {
        if (arrival.is_full()) {
            const auto left = [&](std::size_t most) { return std::min(most, message.size()); };
            arrival.make_room(arrival.wanted(left, 100 * MessageArrival::kPieceBytesMax));
            rooms.push_back(arrival.room().size());
        }
        const auto room = arrival.room();
        const std::size_t came = std::min({room.size(), message.size(), at_a_time});
        std::memcpy(room.data(), message.data(), came);
        arrival.add(came);
        message.erase(0, came);
    }
    return rooms;
}

std::string join(const std::vector<std::string>& pieces) {
    return std::accumulate(pieces.begin(), pieces.end(), std::string());
}

TEST_CASE("the room of a message doubles, up to a bound", "[http][websocket]") {
    MessageArrival arrival;
    CHECK(arrival.is_full());
    const auto unknown = [](std::size_t most) { return most; };
    CHECK(arrival.wanted(unknown, 100 * kFirst) == kFirst);
    std::string message(5'000'000, 'm');
    for (std::size_t i = 0; i < message.size(); i += 1000) {
        message[i] = static_cast<char>('a' + i / 1000 % 26);
    }
    const std::size_t at_a_time = GENERATE(as<std::size_t>(), 1 << 20U, 70'001);
    const auto rooms = arrive(arrival, message, at_a_time);
    REQUIRE(rooms.size() > 8);
    CHECK(rooms[0] == kFirst);
    CHECK(rooms[1] == kFirst);
    CHECK(rooms[2] == 2 * kFirst);
    CHECK(rooms[6] == 32 * kFirst);
    CHECK(rooms[7] == MessageArrival::kPieceBytesMax);
    CHECK(rooms[8] == MessageArrival::kPieceBytesMax);
    CHECK(arrival.bytes() == message.size());
    CHECK(join(arrival.take()) == message);
}

TEST_CASE("a long message claims what its frame announces", "[http][websocket]") {
    constexpr std::size_t kMiB = MessageArrival::kPieceBytesMax;
    MessageArrival arrival;
    const auto come = [&arrival](std::size_t bytes) {
        arrival.make_room(bytes);
        arrival.add(bytes);
    };
    const auto announced = [](std::size_t) { return 50 * kMiB; };
    const auto unknown = [](std::size_t most) { return most; };
    come(kMiB - 1);
    CHECK(arrival.wanted(announced, 100 * kMiB) == kMiB - 1);  // it doubles
    come(1);
    CHECK(arrival.wanted(announced, 100 * kMiB) == 50 * kMiB);
    CHECK(arrival.wanted(unknown, 100 * kMiB) == kMiB);  // of frames that are to come
    come(kMiB);
    CHECK(arrival.wanted(unknown, 100 * kMiB) == 2 * kMiB);
    // The library refuses what is too long; no more than has come is claimed for that.
    CHECK(arrival.wanted(announced, 10 * kMiB) == 2 * kMiB);
    CHECK(arrival.wanted(unknown, kMiB) == 2 * kMiB);
}

TEST_CASE("a room that was not filled is none of the message", "[http][websocket]") {
    MessageArrival arrival;
    SECTION("of an empty message") {
        CHECK(arrival.take().empty());
    }
    SECTION("of one that ended sooner") {
        arrival.make_room(10);
        std::memcpy(arrival.room().data(), "abc", 3);
        arrival.add(3);
        CHECK_FALSE(arrival.is_full());
        CHECK(arrival.room().size() == 7);
        CHECK(join(arrival.take()) == "abc");
    }
    SECTION("of one that ended before its first byte") {
        arrival.make_room(10);
        CHECK(join(arrival.take()).empty());
    }
}

}  // namespace
}  // namespace cellkeep::http
