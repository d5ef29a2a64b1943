// SPDX-License-Identifier: Apache-2.0
//
// What the server's end of the link handles in one turn of the loop, and out of turn.
#include "protocol/limits.hpp"
#include "tests/unit/kernel/link_harness.hpp"

#include <chrono>
#include <functional>
#include <string>

using cellkeep::Error;
using cellkeep::write_all;
using cellkeep::protocol::Message;
using cellkeep::session::KernelLink;
using cellkeep::test::LinkHarness;
using cellkeep::test::on_wire;
using cellkeep::test::stream_text;

TEST_CASE("a message is caught up with while a turn is still to come", "[session][link]") {
    LinkHarness harness;
    const auto& received = harness.received;
    std::size_t wanted = 0;
    const std::function<bool()> enough = [&] { return received.size() >= wanted; };
    // The first is longer than a turn, so another turn is posted for the rest.
    const std::string text(cellkeep::limits::kLinkTurnBytesMax + 1000, 'x');
    harness.say(on_wire(stream_text(text)));
    harness.say(on_wire(stream_text("two")) + on_wire(stream_text("three")));
    SECTION("up to it, and no further") {
        wanted = 2;
        harness.io.run_one();
        REQUIRE(received.empty());
        harness.link->catch_up(enough);
        REQUIRE(received.size() == 2);
        CHECK(received[1].parse_content().value()["text"] == "two");
    }
    SECTION("also if it has to be read first") {
        wanted = 3;
        harness.io.run_one();
        harness.link->catch_up(enough);
        CHECK(received.size() == 3);
    }
    SECTION("one turn's bytes at most: a flood is left to the turns") {
        wanted = 3;
        harness.link->catch_up(enough);
        CHECK(received.empty());
    }
    SECTION("a paused link is left as it is") {
        harness.io.run_one();
        harness.link->pause_reading();
        harness.link->catch_up(enough);
        CHECK(received.empty());
        harness.link->resume_reading();
    }
    wanted = 3;
    while (received.size() < wanted) {
        harness.io.run_one();
    }
    CHECK(received[2].parse_content().value()["text"] == "three");
    CHECK(harness.closings.empty());
}

TEST_CASE(
    "limits::kLinkTurnTimeMax: messages that take long to handle are handled in turns",
    "[session][link][limits]") {
    LinkHarness harness;
    constexpr std::size_t kMessages = 20;
    std::string wire;
    for (std::size_t i = 0; i < kMessages; ++i) {
        wire += on_wire(stream_text("small"));
    }
    std::size_t handled = 0;
    std::size_t handlers = 0;
    auto pair = cellkeep::make_socket_pair(SOCK_STREAM).value();
    REQUIRE(cellkeep::set_nonblocking(pair.first.get()).has_value());
    const auto link = KernelLink::create(
                          harness.io,
                          std::move(pair.first),
                          {.on_message =
                               [&](const Message&) {
                                   ++handled;
                                   const auto began = std::chrono::steady_clock::now();
                                   while (std::chrono::steady_clock::now() - began <=
                                          cellkeep::limits::kLinkTurnTimeMax) {
                                   }
                               },
                           .on_closed = [](const Error&) {}})
                          .value();
    REQUIRE(write_all(pair.second.get(), wire).has_value());
    link->start();
    while (handled < kMessages) {
        handlers += harness.io.run_one();
    }
    CHECK(handlers >= kMessages);
    link->close();
}
