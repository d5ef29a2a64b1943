// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/answers/event_stream.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::api {
namespace {

namespace asio = boost::asio;
using protocol::TextPieces;

/// Keeps what is written and calls the test.
class Writer : public http::BodyWriter {
 public:
    void watch(std::function<void()>) override {}
    bool gone() const override { return false; }
    asio::awaitable<Status> write(std::string_view bytes) override {
        text += bytes;
        on_write(text);
        co_return ok();
    }
    std::string text;
    std::function<void(const std::string&)> on_write = [](const std::string&) {};
};

struct Fixture {
    asio::io_context io;
    static session::Execution::Order order() {
        session::Execution::Order one;
        one.id = "exe_1";
        return one;
    }
    std::shared_ptr<session::Execution> execution =
        std::make_shared<session::Execution>(io, order());
    Writer writer;

    EventStream stream() const {
        EventStream stream;
        stream.execution = execution;
        stream.framing = EventFraming::kLines;
        stream.answer = [](const session::Execution&) { return TextPieces("\"whole\""); };
        return stream;
    }
    void run(EventStream stream) {
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                const Status written = co_await write_events(writer, std::move(stream));
                CHECK(written.has_value());
            },
            [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
        (void)io.run();
    }
};

TEST_CASE("a stream without events sends heartbeats", "[agent][events]") {
    CHECK(EventStream().heartbeat == limits::kEventHeartbeat);
    CHECK(limits::kEventHeartbeat == std::chrono::seconds(5));
    Fixture fixture;
    EventStream stream = fixture.stream();
    stream.heartbeat = std::chrono::milliseconds(1);
    fixture.writer.on_write = [&](const std::string& text) {
        if (text.find("heartbeat") != std::string::npos && !fixture.execution->result()) {
            fixture.execution->finish({});
        }
    };
    fixture.run(std::move(stream));
    CHECK(fixture.writer.text.find("{\"type\":\"heartbeat\"}\n") == 0);
    CHECK(
        fixture.writer.text.find("{\"seq\":1,\"type\":\"finished\",\"execution\":\"whole\"}\n") !=
        std::string::npos);
}

TEST_CASE("a stream that fell behind says which events it missed", "[agent][events]") {
    Fixture fixture;
    for (int i = 0; i < 5; ++i) {
        fixture.execution->add_event("stdout", TextPieces(R"({"text":"x"})"));
    }
    fixture.execution->finish({});
    fixture.execution->forget_events();
    EventStream stream = fixture.stream();
    stream.after = 2;
    fixture.run(std::move(stream));
    CHECK(
        fixture.writer.text.find("{\"seq\":5,\"type\":\"gap\",\"events\":3,\"from\":3,\"to\":5}\n"
                                 "{\"seq\":6,\"type\":\"finished\"") == 0);
}

TEST_CASE("a stream behind the last event there will be ends with the run", "[agent][events]") {
    Fixture fixture;
    EventStream stream = fixture.stream();
    stream.heartbeat = std::chrono::milliseconds(1);
    stream.after = 1000;
    fixture.writer.on_write = [&](const std::string&) {
        if (!fixture.execution->result()) {
            fixture.execution->finish({});
        }
    };
    fixture.run(std::move(stream));
    CHECK(fixture.writer.text == "{\"type\":\"heartbeat\"}\n");
}

TEST_CASE("a stream that is never run still reports that its client went", "[agent][events]") {
    Fixture fixture;
    int went = 0;
    const auto guard = [&] { return std::make_shared<DisconnectGuard>([&] { ++went; }); };
    {
        EventStream stream = fixture.stream();
        stream.on_disconnect = guard();
        const EventStream copy = stream;
        CHECK(went == 0);
    }
    CHECK(went == 1);
    fixture.execution->finish({});
    EventStream stream = fixture.stream();
    stream.on_disconnect = guard();
    fixture.run(std::move(stream));
    CHECK(went == 1);
}

TEST_CASE("an event is one line, or a block with its id", "[agent][events]") {
    CHECK(
        frame_event(EventFraming::kLines, 0, "heartbeat", TextPieces("{}")).join() ==
        "{\"type\":\"heartbeat\"}\n");
    CHECK(
        frame_event(EventFraming::kServerSent, 0, "heartbeat", TextPieces("{}")).join() ==
        "event: heartbeat\ndata: {\"type\":\"heartbeat\"}\n\n");
    CHECK(
        frame_event(EventFraming::kServerSent, 7, "stdout", TextPieces("{\"text\":\"a\"}"))
            .join() ==
        "id: 7\nevent: stdout\ndata: {\"seq\":7,\"type\":\"stdout\",\"text\":\"a\"}\n\n");
}

}  // namespace
}  // namespace cellkeep::api
