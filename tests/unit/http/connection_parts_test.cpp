// SPDX-License-Identifier: Apache-2.0
//
// The parts of a connection over a pair of sockets, on one thread and without a listener.
#include "kernel-manager/http/connection/peer_watch.hpp"
#include "kernel-manager/http/connection/request_reader.hpp"
#include "kernel-manager/http/connection/response_sender.hpp"
#include "kernel-manager/http/connection/wire.hpp"
#include "protocol/limits.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace cellkeep::http::test {
namespace {

namespace asio = boost::asio;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Clock = Deadline::Clock;

class Parts {
 public:
    Parts() {
        asio::local::stream_protocol::socket server(io);
        asio::local::connect_pair(client, server);
        wire = std::make_shared<Wire>(
            std::make_shared<ByteStream>(ByteStream::Socket(std::move(server)), ByteStream::Peer()),
            ConnectionLimits());
        reader = std::make_shared<RequestReader>(wire);
        watch = std::make_shared<PeerWatch>(wire, reader);
    }

    void send(const std::string& text) { (void)asio::write(client, asio::buffer(text)); }
    /// What the server has sent and then ended.
    std::string receive_all() {
        wire->stream->close();
        std::string text;
        boost::system::error_code end;
        (void)asio::read(client, asio::dynamic_buffer(text), end);
        return text;
    }
    void run(asio::awaitable<void> work) {
        bool done = false;
        asio::co_spawn(io, std::move(work), [&done](std::exception_ptr thrown) {
            REQUIRE_FALSE(thrown);
            done = true;
        });
        while (!done) {
            io.restart();
            REQUIRE(io.run_one() > 0);
        }
    }
    template <typename T>
    T run(asio::awaitable<T> work) {
        std::optional<T> result;
        run(keep(std::move(work), result));
        return std::move(*result);
    }
    bool read_head() { return !run(reader->read_head()).has_value(); }

    asio::io_context io{1};
    asio::local::stream_protocol::socket client{io};
    std::shared_ptr<Wire> wire;
    std::shared_ptr<RequestReader> reader;
    std::shared_ptr<PeerWatch> watch;

 private:
    template <typename T>
    static asio::awaitable<void> keep(asio::awaitable<T> work, std::optional<T>& result) {
        result.emplace(co_await std::move(work));
    }
};

TEST_CASE("what is written at once has a bound, and the rest is not touched", "[http][parts]") {
    Parts parts;
    constexpr std::size_t kMost = limits::kHttpWriteAtOnceBytesMax;
    // The socket itself takes all of it at once.
    const std::string head(1000, 'h');
    const std::string body(kMost, 'b');
    const std::array<asio::const_buffer, 2> answer{asio::buffer(head), asio::buffer(body)};
    CHECK(parts.wire->stream->write_at_once(std::span(answer).first(1)) == head.size());
    CHECK(parts.wire->stream->write_at_once(answer) == kMost);
    CHECK(parts.receive_all() == head + head + body.substr(0, kMost - head.size()));
}

TEST_CASE("a deadline is due at its time, and a new one has not expired", "[http][parts]") {
    Deadline deadline;
    const auto now = Clock::now();
    CHECK_FALSE(deadline.due(now + std::chrono::hours(1)));
    deadline.set_at(now);
    CHECK(deadline.due(now));
    CHECK_FALSE(deadline.due(now - std::chrono::nanoseconds(1)));
    CHECK_FALSE(deadline.expired());
    deadline.expire();
    deadline.clear();
    CHECK(deadline.expired());
    CHECK_FALSE(deadline.due(now + std::chrono::hours(1)));
    deadline.set(std::chrono::milliseconds(1));
    CHECK_FALSE(deadline.expired());
    CHECK(deadline.due(Clock::now() + std::chrono::milliseconds(1)));
}

TEST_CASE("a length that cannot be known is refused", "[http][parts]") {
    const auto status = [](const char* coding, HttpVersion version) {
        Headers headers;
        headers.add("transfer-encoding", coding);
        const auto problem = check_framing(headers, version);
        return problem ? problem->status : 0;
    };
    CHECK(status("chunked", HttpVersion::kOld) == 400);
    CHECK(status("gzip", HttpVersion::k11) == 501);
    CHECK(status("gzip, chunked", HttpVersion::k11) == 501);
    CHECK(status("", HttpVersion::k11) == 501);
    Headers twice;
    twice.add("Transfer-Encoding", "chunked");
    twice.add("Transfer-Encoding", "chunked");
    CHECK(check_framing(twice, HttpVersion::k11).value().status == 501);
    CHECK(status("Chunked", HttpVersion::k11) == 0);
    CHECK_FALSE(check_framing(Headers(), HttpVersion::kOld).has_value());
}

TEST_CASE("requests that come in one piece are read one after another", "[http][parts]") {
    Parts parts;
    parts.send(
        "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
        "GET /b HTTP/1.0\r\nX-One: 1\r\n\r\n");
    REQUIRE(parts.read_head());
    CHECK(parts.reader->make_request().method == "POST");
    CHECK(parts.reader->target() == "/a");
    CHECK(parts.reader->version() == HttpVersion::k11);
    CHECK_FALSE(parts.reader->done());
    CHECK(parts.run(parts.reader->read_piece(3)).value() == "abc");
    CHECK(parts.run(parts.reader->read_piece(3)).value().empty());
    REQUIRE(parts.read_head());
    const Request second = parts.reader->make_request();
    CHECK(second.method == "GET");
    CHECK(second.headers.get("x-one") == "1");
    CHECK(parts.reader->version() == HttpVersion::kOld);
    CHECK(parts.reader->done());
    CHECK(parts.reader->bytes_ahead() == 0);
}

TEST_CASE("a malformed head has a status, a client that goes has none", "[http][parts]") {
    Parts bad;
    bad.send("no request\r\n\r\n");
    CHECK(bad.run(bad.reader->read_head()).value().status == 400);
    Parts gone;
    gone.client.close();
    CHECK(gone.run(gone.reader->read_head()).value().status == 0);
}

TEST_CASE("a body beyond its bound and an unknown expectation are not admitted", "[http][parts]") {
    Parts parts;
    parts.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    REQUIRE(parts.read_head());
    CHECK(parts.reader->continue_wanted());
    CHECK(
        parts.run(parts.reader->admit_body(3, "100-continue")).error().code() ==
        ErrorCode::kLimitExceeded);
    CHECK(
        parts.run(parts.reader->admit_body(4, "200-ok")).error().code() ==
        ErrorCode::kInvalidArgument);
    CHECK(parts.reader->continue_wanted());
    CHECK(parts.run(parts.reader->admit_body(4, "100-Continue")).has_value());
    CHECK_FALSE(parts.reader->continue_wanted());
    CHECK(parts.receive_all() == "HTTP/1.1 100 Continue\r\n\r\n");
}

TEST_CASE("a body that breaks off or is too long is an error", "[http][parts]") {
    Parts cut;
    cut.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
    cut.client.close();
    REQUIRE(cut.read_head());
    CHECK(cut.run(cut.reader->read_piece(4)).value() == "ab");
    CHECK_FALSE(cut.reader->broken());
    CHECK(cut.run(cut.reader->read_piece(4)).error().code() == ErrorCode::kProtocol);
    CHECK(cut.reader->broken());
    CHECK(cut.run(cut.reader->read_piece(4)).error().code() == ErrorCode::kProtocol);
    Parts large;
    large.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    REQUIRE(large.read_head());
    CHECK(large.run(large.reader->read_piece(2)).error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("only a short rest of a known length is skipped", "[http][parts]") {
    Parts known;
    known.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab");
    REQUIRE(known.read_head());
    CHECK(known.run(known.reader->skip_short_rest()));
    CHECK(known.reader->done());
    Parts unknown;
    unknown.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    REQUIRE(unknown.read_head());
    CHECK_FALSE(unknown.run(unknown.reader->skip_short_rest()));
    Parts large;
    large.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
    REQUIRE(large.read_head());
    CHECK_FALSE(large.run(large.reader->skip_short_rest()));
}

TEST_CASE("an answer that its client does not take has a deadline", "[http][parts]") {
    // limits::kHttpBodyTimeout, and limits::kHttpBodyBytesPerSecond for a text.
    constexpr std::size_t kBytes = 8'000'000;  // more than the sockets hold
    const bool is_file = GENERATE(false, true);
    Parts parts;
    parts.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    REQUIRE(parts.read_head());
    Response response;
    if (is_file) {
        UniqueFd fd(::memfd_create("answer", MFD_CLOEXEC));
        REQUIRE(::ftruncate(fd.get(), kBytes) == 0);
        response.body = FileBody{std::move(fd), 0, kBytes};
    } else {
        response.body = std::string(kBytes, 'x');
    }
    ResponseSender sender(parts.wire);
    std::optional<bool> sent;
    asio::co_spawn(
        parts.io,
        sender.send(response, Sending(), *parts.watch),
        [&sent](std::exception_ptr thrown, bool done) {
            REQUIRE_FALSE(thrown);
            sent = done;
        });
    const auto run = [&parts] {
        parts.io.restart();
        while (parts.io.poll() > 0) {
        }
    };
    const auto begun = Clock::now();
    run();
    CHECK_FALSE(sent.has_value());
    const auto least = limits::kHttpBodyTimeout;
    const auto most = least + std::chrono::seconds(is_file ? 0 : kBytes / kReadBytes);
    CHECK_FALSE(parts.wire->deadline.due(begun + least - std::chrono::seconds(1)));
    CHECK(parts.wire->deadline.due(Clock::now() + most));
    // As the connection's watcher does.
    parts.wire->deadline.expire();
    parts.wire->stream->cancel();
    run();
    CHECK(sent == false);
}

TEST_CASE("a client that goes is noted once, also by a callback that comes late", "[http][parts]") {
    Parts parts;
    parts.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    REQUIRE(parts.read_head());
    int gone = 0;
    parts.watch->watch([&gone] { ++gone; });
    CHECK_FALSE(parts.watch->gone());
    parts.client.close();
    parts.io.restart();
    (void)parts.io.run();
    CHECK(parts.watch->gone());
    CHECK(gone == 1);
    parts.watch->watch([&gone] { gone += 10; });
    CHECK(gone == 11);
    parts.run(parts.watch->end());
    parts.io.restart();
    (void)parts.io.poll();
    CHECK(gone == 11);
}

TEST_CASE("what a watched client sends ahead is the next request", "[http][parts]") {
    Parts parts;
    parts.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    REQUIRE(parts.read_head());
    int gone = 0;
    parts.watch->watch([&gone] { ++gone; });
    parts.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    while (parts.reader->bytes_ahead() == 0) {
        parts.io.restart();
        REQUIRE(parts.io.run_one() > 0);
    }
    parts.run(parts.watch->end());
    CHECK(gone == 0);
    CHECK_FALSE(parts.watch->gone());
    REQUIRE(parts.read_head());
    CHECK(parts.reader->target() == "/b");
}

TEST_CASE("a watch in the middle of a body leaves the body to its reader", "[http][parts]") {
    Parts parts;
    parts.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n");
    REQUIRE(parts.read_head());
    parts.watch->watch([] {});
    parts.send("ab");
    parts.io.restart();
    (void)parts.io.poll();
    CHECK(parts.reader->bytes_ahead() == 0);
    CHECK(parts.run(parts.reader->read_piece(2)).value() == "ab");
}

TEST_CASE("a written body is chunked for HTTP/1.1 and has no end if it fails", "[http][parts]") {
    const auto send = [](HttpVersion version, bool succeeds) {
        Parts parts;
        Response response;
        response.body = StreamBody{[succeeds](BodyWriter& writer) -> asio::awaitable<Status> {
            Status written = co_await writer.write("abc");
            BOOST_OUTCOME_CO_TRY(std::move(written));
            if (!succeeds) {
                co_return Error(ErrorCode::kSystem, "no more");
            }
            co_return ok();
        }};
        ResponseSender sender(parts.wire);
        Sending how;
        how.version = version;
        CHECK(parts.run(sender.send(response, how, *parts.watch)) == succeeds);
        CHECK(sender.streamed_bytes() == 3);
        sender.reset();
        CHECK(sender.streamed_bytes() == 0);
        return parts.receive_all();
    };
    CHECK_THAT(send(HttpVersion::k11, true), EndsWith("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
    CHECK_THAT(send(HttpVersion::k11, false), EndsWith("\r\n\r\n3\r\nabc\r\n"));
    const std::string old = send(HttpVersion::kOld, true);
    CHECK_THAT(old, EndsWith("\r\n\r\nabc"));
    CHECK_THAT(old, !Contains("chunked"));
}

TEST_CASE("the answer to HEAD and a 204 have no body", "[http][parts]") {
    for (const bool head_only : {true, false}) {
        Parts parts;
        Response response = make_json(head_only ? 200 : 204, {{"a", 1}});
        ResponseSender sender(parts.wire);
        Sending how;
        how.head_only = head_only;
        CHECK(parts.run(sender.send(response, how, *parts.watch)));
        CHECK_THAT(parts.receive_all(), EndsWith("\r\n\r\n"));
    }
}

TEST_CASE("what the socket takes is sent at once, and the rest follows", "[http][parts]") {
    Parts parts;
    Response response;
    const std::string body(GENERATE(std::size_t{10}, std::size_t{4'000'000}), 'x');
    response.body = body;
    ResponseSender sender(parts.wire);
    Sending how;
    how.at_once = true;
    bool sent = false;
    const auto send = [&]() -> asio::awaitable<void> {
        sent = co_await sender.send(response, how, *parts.watch);
        parts.wire->stream->close();
    };
    std::string received;
    const auto receive = [&]() -> asio::awaitable<void> {
        (void)co_await asio::async_read(parts.client, asio::dynamic_buffer(received), kAwait);
    };
    asio::co_spawn(parts.io, send(), asio::detached);
    parts.run(receive());
    CHECK(sent);
    CHECK(received.size() == parts.wire->stream->bytes_written());
    CHECK(received.substr(received.find("\r\n\r\n") + 4) == body);
}

TEST_CASE("a client that has gone gets nothing at once", "[http][parts]") {
    Parts parts;
    parts.client.close();
    Response response = make_json(200, {{"a", 1}});
    ResponseSender sender(parts.wire);
    Sending how;
    how.at_once = true;
    CHECK_FALSE(parts.run(sender.send(response, how, *parts.watch)));
    CHECK(parts.wire->stream->bytes_written() == 0);
}

}  // namespace
}  // namespace cellkeep::http::test
