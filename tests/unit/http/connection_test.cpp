// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/connection/connection.hpp"

#include "tests/unit/http/test_server.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace cellkeep::http::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++found;
    }
    return found;
}

/// Sends a piece now and then, from a thread of its own, until the server closes or the object
/// ends.
class Trickle {
 public:
    Trickle(RawClient& client, std::chrono::milliseconds pause, std::string piece = "x")
        : thread_([this, &client, pause, piece = std::move(piece)] {
              std::unique_lock lock(mutex_);
              while (!stopping_ && client.send(piece)) {
                  (void)changed_.wait_for(lock, pause, [this] { return stopping_; });
              }
          }) {}
    Trickle(const Trickle&) = delete;
    Trickle& operator=(const Trickle&) = delete;
    ~Trickle() {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }

 private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stopping_ = false;
    std::thread thread_;
};

TEST_CASE("a request is answered and the connection stays open", "[http][connection]") {
    const TestServer server;
    RawClient client(server.port());
    for (int i = 0; i < 3; ++i) {
        client.send(request_text("GET", "/ok"));
        CHECK_THAT(client.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 OK\r\n"));
    }
}

TEST_CASE("pipelined requests are answered in order", "[http][connection]") {
    const TestServer server;
    RawClient client(server.port());
    client.send(
        request_text("POST", "/echo", "", "first") + request_text("POST", "/echo", "", "second") +
        request_text("POST", "/echo", "Connection: close\r\n", "third"));
    const std::string all = client.read_all();
    CHECK(all.find("first") < all.find("second"));
    CHECK(all.find("second") < all.find("third"));
    CHECK(count(all, "200 OK") == 3);
}

TEST_CASE("a request may be cut anywhere, behind another one", "[http][connection]") {
    const TestServer server;
    const std::string first = request_text("GET", "/ok");
    const std::string chunked = request_text("POST", "/echo", "Transfer-Encoding: chunked\r\n") +
                                "4\r\nabcd\r\n3\r\nefg\r\n0\r\n\r\n";
    RawClient client(server.port());
    for (std::size_t cut = 0; cut <= chunked.size(); ++cut) {
        // The piece is in the server's buffer when the first answer comes, and the rest is not
        // sent.
        client.send(first + chunked.substr(0, cut));
        CHECK_THAT(client.read_until("{\"ok\":true}"), StartsWith("HTTP/1.1 200 OK\r\n"));
        client.send(chunked.substr(cut));
        CHECK_THAT(client.read_until("abcdefg"), StartsWith("HTTP/1.1 200 OK\r\n"));
    }
}

TEST_CASE("HEAD has the headers of GET and no body", "[http][connection]") {
    const TestServer server;
    const std::string answer = exchange(server.port(), request_text("HEAD", "/ok"));
    CHECK_THAT(answer, Contains("Content-Length: 11\r\n"));
    CHECK_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_CASE("a range of a file is streamed", "[http][connection]") {
    const TestServer server;
    CHECK_THAT(exchange(server.port(), request_text("GET", "/file")), EndsWith("\r\n\r\n23456"));
}

TEST_CASE("a request names one host, and its target no other", "[http][connection]") {
    const TestServer server;
    const auto ask = [&server](const std::string& target, const std::string& hosts) {
        return exchange(
            server.port(),
            "GET " + target + " HTTP/1.1\r\n" + hosts + "Authorization: Bearer t\r\n\r\n");
    };
    CHECK_THAT(ask("/ok", "Host: localhost\r\n"), StartsWith("HTTP/1.1 200 "));
    CHECK_THAT(ask("http://localhost/ok", "Host: localhost\r\n"), StartsWith("HTTP/1.1 200 "));
    const auto [target, hosts] = GENERATE(table<std::string, std::string>({
        {"/ok", "Host: localhost\r\nHost: localhost\r\n"},
        {"/ok", "Host: localhost\r\nhost: evil.example\r\n"},
        {"/ok", "Host: [::1].evil.example\r\n"},
        {"/ok", "Host: [::1]evil\r\n"},
        {"/ok", "Host: 127.0.0.1:80:evil\r\n"},
        {"http://evil.example/ok", "Host: localhost\r\n"},
        {"http://localhost@evil.example/ok", "Host: localhost\r\n"},
        {"http:///ok", "Host: localhost\r\n"},
    }));
    CAPTURE(target, hosts);
    CHECK_THAT(ask(target, hosts), StartsWith("HTTP/1.1 400 "));
}

TEST_CASE("a body whose end is not known ends the connection", "[http][connection]") {
    const TestServer server;
    const auto [version, coding, status] = GENERATE(table<std::string, std::string, std::string>({
        {"1.1", "Transfer-Encoding: gzip", "501"},
        {"1.1", "Transfer-Encoding: identity", "501"},
        {"1.1", "Transfer-Encoding: xchunked", "501"},
        {"1.1", "Transfer-Encoding: chunked, identity", "501"},
        {"1.1", "Transfer-Encoding: gzip, chunked", "501"},
        {"1.1", "Transfer-Encoding: chunked;x=y", "501"},
        {"1.1", "Transfer-Encoding:", "501"},
        {"1.1", "Transfer-Encoding: gzip\r\ntransfer-encoding: chunked", "501"},
        {"1.1", "Transfer-Encoding: gzip\r\nContent-Length: 1", "501"},
        {"1.0", "Connection: keep-alive\r\nTransfer-Encoding: gzip", "400"},
        {"1.0", "Connection: keep-alive\r\nTransfer-Encoding: chunked", "400"},
    }));
    CAPTURE(version, coding);
    RawClient client(server.port());
    client.send(
        "POST /echo HTTP/" + version + "\r\nHost: localhost\r\nAuthorization: Bearer t\r\n" +
        coding + "\r\n\r\n" + request_text("GET", "/ok"));
    const std::string answer = client.read_all();
    CHECK_THAT(answer, StartsWith("HTTP/1.1 " + status + " "));
    CHECK_THAT(answer, Contains("Connection: close"));
    CHECK_THAT(answer, Contains("\"instance\":\"/echo\""));
    CHECK(count(answer, "HTTP/1.1 ") == 1);
}

TEST_CASE("a refused head names its address, or the server", "[http][connection]") {
    const TestServer server;
    const auto [text, instance] = GENERATE(table<std::string, std::string>({
        {"GET /ok HTTP/1.1\r\nno colon\r\n\r\n", "/ok"},
        {"GET /ok?token=t HTTP/1.1\r\nno colon\r\n\r\n", "/ok"},
        {"garbage\r\n\r\n", "/"},
    }));
    CAPTURE(text);
    RawClient client(server.port());
    client.send(text);
    CHECK_THAT(client.read_all(), Contains("\"instance\":\"" + instance + "\""));
}

TEST_CASE("a head of the maximum is read and a longer one is refused", "[http][connection]") {
    // limits::kHttpHeadBytesMax
    const TestServer server;
    const auto head = [](std::size_t bytes) {
        std::string text = request_text("GET", "/ok", "Connection: close\r\nX: \r\n");
        text.insert(text.size() - 4, std::string(bytes - text.size(), 'x'));
        return text;
    };
    RawClient fits(server.port());
    fits.send(head(limits::kHttpHeadBytesMax - 2));
    CHECK_THAT(fits.read_all(), StartsWith("HTTP/1.1 200 "));
    RawClient longer(server.port());
    longer.send(head(limits::kHttpHeadBytesMax + 1));
    CHECK_THAT(longer.read_all(), StartsWith("HTTP/1.1 431 "));
}

TEST_CASE("a body of the maximum is taken and one byte more is refused", "[http][connection]") {
    const TestServer server;
    const auto post = [&server](std::size_t bytes) {
        return exchange(server.port(), request_text("POST", "/echo", "", std::string(bytes, 'b')));
    };
    CHECK_THAT(post(1000), StartsWith("HTTP/1.1 200 "));
    CHECK_THAT(post(1001), StartsWith("HTTP/1.1 413 "));
}

TEST_CASE("a chunked body is counted as it comes", "[http][connection]") {
    const TestServer server;
    const auto post = [&server](std::size_t bytes) {
        std::array<char, 16> size{};
        (void)std::snprintf(size.data(), size.size(), "%zx", bytes);
        return exchange(
            server.port(),
            request_text("POST", "/echo", "Transfer-Encoding: chunked\r\n") + size.data() + "\r\n" +
                std::string(bytes, 'c') + "\r\n0\r\n\r\n");
    };
    CHECK_THAT(post(1000), StartsWith("HTTP/1.1 200 "));
    CHECK_THAT(post(1001), StartsWith("HTTP/1.1 413 "));
    const std::string broken = exchange(
        server.port(), request_text("POST", "/echo", "Transfer-Encoding: chunked\r\n") + "zz\r\n");
    CHECK_THAT(broken, StartsWith("HTTP/1.1 400 "));
}

TEST_CASE("a client that sends far too much still reads its 413", "[http][connection]") {
    const TestServer server;
    const std::size_t bytes = 20'000'000;
    const std::string answer =
        exchange(server.port(), request_text("POST", "/echo", "", std::string(bytes, 'x')));
    CHECK_THAT(answer, StartsWith("HTTP/1.1 413 "));
    CHECK_THAT(answer, Contains("\"status\":413"));
}

TEST_CASE("a client that never stops sending is cut off", "[http][connection]") {
    ConnectionLimits limits;
    limits.drain_bytes_max = 1'000'000;
    const TestServer server(limits);
    RawClient client(server.port());
    const std::string piece(1'000'000, 'x');
    bool open = client.send(request_text("POST", "/echo", "Content-Length: 1000000000\r\n"));
    int pieces = 0;
    while (open && pieces < 200) {
        open = client.send(piece);
        ++pieces;
    }
    CHECK_FALSE(open);
}

TEST_CASE("an upload is streamed and bounded", "[http][connection]") {
    const TestServer server;
    const auto put = [&server](std::size_t bytes) {
        return exchange(server.port(), request_text("PUT", "/stream", "", std::string(bytes, 's')));
    };
    CHECK_THAT(put(100'000), EndsWith("{\"bytes\":100000}"));
    CHECK_THAT(put(100'001), StartsWith("HTTP/1.1 413 "));
}

TEST_CASE("100 Continue is sent only when the body is wanted", "[http][connection]") {
    const TestServer server;
    RawClient wanted(server.port());
    wanted.send(request_text("POST", "/echo", "Expect: 100-continue\r\nContent-Length: 5\r\n"));
    CHECK(wanted.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
    wanted.send("hello");
    CHECK_THAT(wanted.read_until("hello"), StartsWith("HTTP/1.1 200 "));

    RawClient refused(server.port());
    refused.send(request_text("POST", "/echo", "Expect: 100-continue\r\nContent-Length: 5000\r\n"));
    CHECK_THAT(refused.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 413 "));

    RawClient strange(server.port());
    strange.send(request_text("POST", "/echo", "Expect: miracles\r\nContent-Length: 5\r\n"));
    CHECK_THAT(strange.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 417 "));
}

TEST_CASE(
    "a refused request with a short body leaves the connection usable", "[http][connection]") {
    const TestServer server;
    RawClient client(server.port());
    client.send(
        request_text("POST", "/nowhere", "", "some body") +
        request_text("GET", "/ok", "Connection: close\r\n"));
    const std::string all = client.read_all();
    CHECK_THAT(all, StartsWith("HTTP/1.1 404 "));
    CHECK(count(all, "HTTP/1.1 200 OK") == 1);
}

TEST_CASE("a head that does not come in time is a 408", "[http][connection]") {
    ConnectionLimits limits;
    limits.head_timeout = std::chrono::milliseconds(50);
    const TestServer server(limits);
    RawClient client(server.port());
    client.send("GET /ok HT");
    CHECK_THAT(client.read_all(), StartsWith("HTTP/1.1 408 "));
}

TEST_CASE("a body that does not come in time is a 408", "[http][connection]") {
    ConnectionLimits limits;
    limits.body_timeout = std::chrono::milliseconds(50);
    limits.drain_timeout = std::chrono::milliseconds(50);
    const TestServer server(limits);
    RawClient client(server.port());
    client.send(request_text("POST", "/echo", "Content-Length: 10\r\n") + "half");
    CHECK_THAT(client.read_all(), StartsWith("HTTP/1.1 408 "));
}

TEST_CASE("a body that trickles in is a 408 all the same", "[http][connection]") {
    ConnectionLimits limits;
    limits.body_timeout = std::chrono::seconds(1);
    limits.drain_timeout = std::chrono::milliseconds(50);
    const TestServer server(limits);
    RawClient client(server.port());
    client.send(request_text("POST", "/echo", "Content-Length: 1000\r\n"));
    const Trickle trickle(client, std::chrono::milliseconds(20));
    CHECK_THAT(client.read_all(), StartsWith("HTTP/1.1 408 "));
}

TEST_CASE("what comes fast enough may take longer than a silence", "[http][connection]") {
    // limits::kHttpBodyBytesPerSecond
    ConnectionLimits limits;
    limits.body_timeout = std::chrono::seconds(2);
    limits.body_bytes_per_second = 100;
    const TestServer server(limits);
    RawClient client(server.port());
    client.send(request_text("POST", "/echo", "Content-Length: 600\r\nConnection: close\r\n"));
    const Trickle trickle(client, std::chrono::milliseconds(500), std::string(100, 'x'));
    CHECK_THAT(client.read_all(), StartsWith("HTTP/1.1 200 "));
}

TEST_CASE("a body that is meant to stay open ends by a silence only", "[http][connection]") {
    ConnectionLimits limits;
    limits.body_timeout = std::chrono::milliseconds(100);
    limits.drain_timeout = std::chrono::milliseconds(50);
    const TestServer server(limits);
    SECTION("it comes for longer than a body may take") {
        RawClient client(server.port());
        client.send(request_text("PUT", "/open", "Content-Length: 10\r\nConnection: close\r\n"));
        const Trickle trickle(client, std::chrono::milliseconds(50), "x");
        CHECK_THAT(client.read_all(), StartsWith("HTTP/1.1 200 "));
    }
    SECTION("it is silent") {
        RawClient client(server.port());
        client.send(request_text("PUT", "/open", "Content-Length: 10\r\n") + "half");
        CHECK_THAT(client.read_all(), StartsWith("HTTP/1.1 400 "));
    }
    SECTION("another route's body is bounded as a whole") {
        RawClient client(server.port());
        client.send(request_text("PUT", "/stream", "Content-Length: 10\r\n"));
        const Trickle trickle(client, std::chrono::milliseconds(50), "x");
        CHECK_THAT(client.read_all(), StartsWith("HTTP/1.1 400 "));
    }
}

TEST_CASE("the rest of a refused body is waited for a bounded while", "[http][connection]") {
    ConnectionLimits limits;
    limits.drain_timeout = std::chrono::milliseconds(300);
    const TestServer server(limits);
    RawClient client(server.port());
    client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n");
    const Trickle trickle(client, std::chrono::milliseconds(20));
    const std::string answer = client.read_until("\r\n\r\n");
    CHECK_THAT(answer, StartsWith("HTTP/1.1 401 "));
    CHECK_THAT(answer, Contains("Connection: close"));
}

TEST_CASE("an idle connection is closed without a word", "[http][connection]") {
    ConnectionLimits limits;
    limits.idle_timeout = std::chrono::milliseconds(50);
    const TestServer server(limits);
    RawClient client(server.port());
    CHECK(client.read_all().empty());
}

TEST_CASE("without a token the answer comes before the body", "[http][connection]") {
    const TestServer server;
    RawClient client(server.port());
    // The client never sends the body: a server that waits for it does not answer.
    CHECK(
        client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000\r\n\r\n"));
    CHECK_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 401 "));
    RawClient chunked(server.port());
    CHECK(chunked.send(
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"));
    CHECK_THAT(chunked.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 401 "));
}

TEST_CASE("HTTP/1.0 is answered and closed", "[http][connection]") {
    const TestServer server;
    RawClient client(server.port());
    client.send("GET /ok HTTP/1.0\r\nHost: localhost\r\nAuthorization: token t\r\n\r\n");
    CHECK_THAT(client.read_all(), EndsWith("{\"ok\":true}"));
}

TEST_CASE("the access log has no query", "[http][connection]") {
    TestServer server;
    (void)exchange(server.port(), "GET /ok?token=t HTTP/1.1\r\nHost: localhost\r\n\r\n");
    (void)exchange(server.port(), "GET /a/../b?token=t HTTP/1.1\r\nHost: localhost\r\n\r\n");
    server.stop();
    REQUIRE(server.records().size() == 2);
    CHECK(server.records()[0].path == "/ok");
    CHECK(server.records()[0].status == 200);
    CHECK(server.records()[0].principal == "admin");
    CHECK(server.records()[1].path == "/a/../b");
}

}  // namespace
}  // namespace cellkeep::http::test
