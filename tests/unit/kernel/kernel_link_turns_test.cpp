// SPDX-License-Identifier: Apache-2.0
//
// What the server's end of the link handles in one turn of the loop, and out of turn.
#include "protocol/limits.hpp"
#include "tests/unit/kernel/link_harness.hpp"

#include <chrono>
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
    const auto catch_up_to = [&](std::size_t wanted) {
        harness.link->catch_up([&, wanted] { return received.size() >= wanted; });
    };
    harness.say(on_wire(stream_text("one")) + on_wire(stream_text("two")));
    catch_up_to(1);
    REQUIRE(received.size() == 1);  // and the next turn is posted, with the second message
    SECTION("which has it already") {
        catch_up_to(2);
        CHECK(received.size() == 2);
    }
    SECTION("up to it and no further, also if it has to be read first") {
        harness.say(on_wire(stream_text("three")) + on_wire(stream_text("four")));
        catch_up_to(3);
        CHECK(received.size() == 3);
    }
    SECTION("a paused link is left as it is") {
        harness.link->pause_reading();
        catch_up_to(2);
        CHECK(received.size() == 1);
        harness.link->resume_reading();
    }
    harness.say(on_wire(stream_text("last")));
    const auto is_last = [](const Message& one) {
        return one.parse_content().value()["text"] == "last";
    };
    while (!is_last(received.back())) {
        harness.io.run_one();
    }
    CHECK(received[1].parse_content().value()["text"] == "two");
    CHECK(harness.closings.empty());
}

TEST_CASE(
    "limits::kLinkTurnBytesMax: a flood is not caught up with, but left to the turns",
    "[session][link][limits]") {
    LinkHarness harness;
    const std::string text(cellkeep::limits::kLinkTurnBytesMax, 'x');
    harness.say(on_wire(stream_text(text)));
    harness.link->catch_up([&] { return !harness.received.empty(); });
    CHECK(harness.received.empty());
    while (harness.received.empty()) {
        harness.io.run_one();
    }
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
