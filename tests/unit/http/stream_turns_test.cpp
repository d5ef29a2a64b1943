// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/connection/stream_turns.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace cellkeep::http {
namespace {

namespace asio = boost::asio;

struct TurnsHarness {
    std::unique_ptr<asio::io_context> io = std::make_unique<asio::io_context>();
    StreamTurns& turns = asio::use_service<StreamTurns>(*io);
    std::string written;  // the names of streams, in the order of their pieces

    void stream(char name, int pieces) {
        asio::co_spawn(
            *io,
            [this, name, pieces]() -> asio::awaitable<void> {
                for (int i = 0; i < pieces; ++i) {
                    co_await turns.next();
                    written += name;
                }
            },
            [](const std::exception_ptr& thrown) { REQUIRE_FALSE(thrown); });
    }
    void run() {
        io->restart();
        io->run();
    }
};

}  // namespace

TEST_CASE("limits::kHttpStreamPiecesPerTurn: what else is ready comes before the rest", "[http]") {
    static_assert(limits::kHttpStreamPiecesPerTurn == 4);
    TurnsHarness harness;
    for (const char name : std::string("abcdef")) {
        harness.stream(name, 1);
    }
    asio::post(*harness.io, [&harness] { harness.written += '|'; });
    harness.run();
    CHECK(harness.written == "abcd|ef");
    CHECK(harness.turns.waiting() == 0);
}

TEST_CASE("as many streams as a turn has room for do not wait", "[http]") {
    TurnsHarness harness;
    for (const char name : std::string("abcd")) {
        harness.stream(name, 1);
    }
    asio::post(*harness.io, [&harness] { harness.written += '|'; });
    harness.run();
    CHECK(harness.written == "abcd|");
}

TEST_CASE("a stream that came later has its first piece in the next turn", "[http]") {
    TurnsHarness harness;
    harness.stream('a', 12);
    harness.stream('b', 3);
    harness.run();
    CHECK(harness.written.substr(0, 4) == "aaaa");
    CHECK(harness.written.find('b') < 2 * limits::kHttpStreamPiecesPerTurn);
    CHECK(harness.written.size() == 15);
}

TEST_CASE("a stream that waits can vanish with its loop", "[http]") {
    TurnsHarness harness;
    for (const char name : std::string("abcdef")) {
        harness.stream(name, 1);
    }
    CHECK(harness.io->poll_one() == 1);
    harness.io.reset();
    CHECK(harness.written.size() <= 4);
}

}  // namespace cellkeep::http
