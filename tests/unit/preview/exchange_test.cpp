// SPDX-License-Identifier: Apache-2.0
//
// Requests that are passed on to a server inside, which here is the other end of a socket pair.
#include "kernel-manager/preview/previews.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"
#include "tests/unit/service/fake_session_service.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::preview {
namespace {

namespace asio = boost::asio;
using session::test::FakeSession;
using session::test::FakeSessionService;

/// Keeps what is written; may take nothing more.
class Visitor : public http::BodyWriter {
 public:
    void watch(std::function<void()> gone) override { on_gone = std::move(gone); }
    bool gone() const override { return false; }
    asio::awaitable<Status> write(std::string_view bytes) override {
        text += bytes;
        most = std::max(most, bytes.size());
        co_return ok();
    }
    std::string text;
    std::size_t most = 0;  // bytes of one piece
    std::function<void()> on_gone;
};

class Pieces : public http::BodyStream {
 public:
    explicit Pieces(std::deque<std::string> pieces) : left_(std::move(pieces)) {}
    asio::awaitable<Result<std::string_view>> read() override {
        if (fails_with && left_.empty()) {
            co_return *fails_with;
        }
        now_ = left_.empty() ? std::string() : left_.front();
        if (!left_.empty()) {
            left_.pop_front();
        }
        co_return std::string_view(now_);
    }
    std::optional<Error> fails_with;

 private:
    std::deque<std::string> left_;
    std::string now_;
};

struct World {
    World() : previews(auth, config()) { session = service.add(); }

    static PreviewConfig config() {
        PreviewConfig config;
        // Long enough for a busy host; where a test waits for one, it is all that it waits for.
        config.patience = {
            std::chrono::milliseconds(200),
            std::chrono::milliseconds(200),
            std::chrono::milliseconds(200)};
        return config;
    }

    /// A server inside that has said this already, and closes behind it unless it is to stay.
    int add_server(const std::string& says, bool stays = false) {
        auto ends = make_socket_pair(SOCK_STREAM);
        REQUIRE(ends.has_value());
        REQUIRE(write_all(ends.value().second.get(), says).has_value());
        if (!stays) {
            ::shutdown(ends.value().second.get(), SHUT_WR);
        }
        session->servers_inside.push_back(std::move(ends.value().first));
        inside.push_back(std::move(ends.value().second));
        return inside.back().get();
    }
    /// What a server inside has got so far.
    static std::string received(int fd) {
        std::string text(1 << 20, '\0');
        const ssize_t got = ::recv(fd, text.data(), text.size(), MSG_DONTWAIT);
        text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
        return text;
    }
    http::Response ask(const std::string& method = "GET", const std::string& path = "/x") {
        request.method = method;
        auto target = http::parse_target("/v1/sessions/ses_1/ports/80" + path);
        request.target = std::move(target).value();
        request.headers.set("Host", "127.0.0.1:8888");
        http::Response response;
        run([&]() -> asio::awaitable<void> {
            response = co_await previews.serve(request, session, 80, 5);
        });
        return response;
    }
    /// The whole body; whether it came to its end.
    bool read(http::Response& response) {
        Status done = ok();
        const auto body = std::get<http::StreamBody>(response.body);
        run([&]() -> asio::awaitable<void> { done = co_await body.run(visitor); });
        return done.has_value();
    }
    void run(const std::function<asio::awaitable<void>()>& work) {
        bool done = false;
        service.io.restart();
        asio::co_spawn(service.io, work, [&done](std::exception_ptr thrown) {
            REQUIRE_FALSE(thrown);
            done = true;
        });
        // Connections that stay open have work left then.
        while (!done && service.io.run_one() > 0) {
        }
    }
    static std::string kind_of(const http::Response& response) {
        const auto* text = std::get_if<std::string>(&response.body);
        REQUIRE(text != nullptr);
        return nlohmann::json::parse(*text)["type"].get<std::string>().substr(10);
    }

    const http::TokenAuth auth{"secret"};
    FakeSessionService service;
    std::shared_ptr<FakeSession> session;
    Previews previews;
    std::vector<UniqueFd> inside;
    http::Request request;
    Visitor visitor;
};

TEST_CASE("an answer is passed on, and its body as it comes", "[preview]") {
    World world;
    const int server =
        world.add_server("HTTP/1.1 201 Made\r\nX-Own: 1\r\nContent-Length: 5\r\n\r\nhello");
    http::Response response = world.ask();
    CHECK(response.status == 201);
    CHECK(response.foreign);
    CHECK(response.headers.get("X-Own") == "1");
    CHECK(response.content_length() == 5);
    CHECK(world.read(response));
    CHECK(world.visitor.text == "hello");
    CHECK(World::received(server).starts_with("GET /x HTTP/1.1\r\n"));
    CHECK(world.session->connected_ports == std::vector<std::uint16_t>{80});
    CHECK(world.session->woken > 0);
}

TEST_CASE("a body without a length ends with the connection or its last chunk", "[preview]") {
    const std::string framed = GENERATE(
        as<std::string>(),
        "HTTP/1.1 200 OK\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
        "chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\nmore");
    World world;
    (void)world.add_server(framed);
    http::Response response = world.ask();
    CHECK_FALSE(std::get<http::StreamBody>(response.body).length.has_value());
    CHECK(world.read(response));
    CHECK(world.visitor.text == "hello");
}

TEST_CASE("no more of a body waits here than the bound", "[preview]") {
    World world;
    const std::string body(kPreviewBufferBytes * 3 + 1, 'x');
    (void)world.add_server("HTTP/1.1 200 OK\r\n\r\n" + body);
    http::Response response = world.ask();
    CHECK(world.read(response));
    CHECK(world.visitor.text == body);
    CHECK(world.visitor.most <= kPreviewBufferBytes);
}

TEST_CASE("answers without a body have none", "[preview]") {
    for (const auto& [method, answer] : std::vector<std::pair<std::string, std::string>>{
             {"GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"},
             {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"},
             {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}}) {
        CAPTURE(answer);
        World world;
        (void)world.add_server(answer);
        const http::Response response = world.ask(method);
        CHECK(response.foreign);
        CHECK(std::get<std::string>(response.body).empty());
    }
    World world;
    (void)world.add_server("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    CHECK(world.ask("HEAD").content_length() == 5);
}

TEST_CASE("a body that is shorter than it says is cut off", "[preview]") {
    const std::string framed = GENERATE(
        as<std::string>(),
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX");
    World world;
    (void)world.add_server(framed);
    http::Response response = world.ask();
    CHECK(response.status == 200);
    CHECK_FALSE(world.read(response));
}

TEST_CASE("what is no answer is a problem", "[preview]") {
    const std::string many(kPreviewFieldsMax + 1, 'x');
    std::string fields;
    for (std::size_t i = 0; i < kPreviewFieldsMax + 1; ++i) {
        fields += "X: 1\r\n";
    }
    std::string interim;
    for (int i = 0; i < kPreviewInterimAnswersMax + 1; ++i) {
        interim += "HTTP/1.1 103 Early Hints\r\n\r\n";
    }
    const std::string fine = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for (const std::string& said :
         {std::string(),
          std::string("HTTP/1.1 200"),
          std::string("nonsense\r\n\r\n"),
          "HTTP/1.1 200 OK\r\nX: " + std::string(kPreviewHeadBytesMax, 'x') + "\r\n\r\n",
          "HTTP/1.1 200 OK\r\n" + fields + "\r\n",
          std::string("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
          std::string("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"),
          std::string("HTTP/1.1 600 Much\r\n\r\n"),
          interim + fine}) {
        CAPTURE(said.substr(0, 80));
        World world;
        (void)world.add_server(said);
        const http::Response response = world.ask();
        CHECK(response.status == 502);
        CHECK_FALSE(response.foreign);
        CHECK(World::kind_of(response) == "port-protocol");
        CHECK(world.previews.connections("ses_1") == 0);
    }
    World world;
    (void)world.add_server(interim.substr(interim.size() / (kPreviewInterimAnswersMax + 1)) + fine);
    CHECK(world.ask().status == 200);
}

TEST_CASE("a server that is silent is not waited for without end", "[preview]") {
    for (const char* said : {"", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 100 Continue\r\n\r\n"}) {
        CAPTURE(said);
        World world;
        (void)world.add_server(said, true);
        const http::Response response = world.ask();
        CHECK(response.status == 504);
        CHECK(World::kind_of(response) == "port-timeout");
    }
    World world;
    (void)world.add_server("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", true);
    http::Response response = world.ask();
    CHECK_FALSE(world.read(response));
    CHECK(world.visitor.text == "hello");
}

TEST_CASE("a port that is not open or is reserved has its problem", "[preview]") {
    World world;
    CHECK(World::kind_of(world.ask()) == "port-not-open");
    for (const auto& [code, kind, status] : std::vector<std::tuple<ErrorCode, std::string, int>>{
             {ErrorCode::kPermissionDenied, "port-reserved", 403},
             {ErrorCode::kTimeout, "port-timeout", 504},
             {ErrorCode::kConflict, "conflict", 409},
             {ErrorCode::kUnavailable, "unavailable", 503}}) {
        world.session->failure = Error(code, "connect");
        const http::Response response = world.ask();
        CHECK(World::kind_of(response) == kind);
        CHECK(response.status == status);
        CHECK(world.previews.connections("ses_1") == 0);
    }
}

TEST_CASE("a session has a bounded number of connections", "[preview]") {
    World world;
    std::vector<http::Response> held;
    for (std::size_t i = 0; i < kPreviewConnectionsMax; ++i) {
        (void)world.add_server("HTTP/1.1 200 OK\r\n\r\n", true);
        held.push_back(world.ask());
        REQUIRE(held.back().status == 200);
    }
    CHECK(world.previews.connections("ses_1") == kPreviewConnectionsMax);
    (void)world.add_server("HTTP/1.1 200 OK\r\n\r\n");
    const http::Response refused = world.ask();
    CHECK(refused.status == 429);
    CHECK(World::kind_of(refused) == "too-many-connections");
    held.pop_back();
    CHECK(world.ask().status == 200);
}

TEST_CASE("a connection ends with its session, though what is inside lives on", "[preview]") {
    World world;
    (void)world.add_server("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", true);
    http::Response response = world.ask();
    CHECK(response.status == 200);
    world.previews.on_session_closed("ses_0");
    CHECK(world.previews.connections("ses_1") == 1);
    world.previews.on_session_closed("ses_1");
    CHECK_FALSE(world.read(response));
}

TEST_CASE("a session is held awake until its answer has come", "[preview]") {
    World world;
    (void)world.add_server("HTTP/1.1 200 OK\r\n\r\nhello");
    {
        http::Response response = world.ask();
        CHECK(world.session->held_awake.lock() != nullptr);
        CHECK(world.read(response));
    }
    CHECK(world.session->held_awake.expired());
}

TEST_CASE(
    "an address with a token of the server is refused, for a page could read it", "[preview]") {
    World world;
    const int server = world.add_server("HTTP/1.1 204 OK\r\n\r\n");
    CHECK(world.ask("GET", "/?token=secret").status == 400);
    CHECK(World::received(server).empty());
    CHECK(world.session->connected_ports.empty());
    // A page cannot read the address of a WebSocket, and a browser's has no fields.
    world.request.websocket.emplace();
    CHECK(world.ask("GET", "/?token=secret&a").status == 204);
    CHECK(World::received(server).starts_with("GET /?a HTTP/1.1\r\n"));
}

TEST_CASE("a request's body is passed on as it was framed", "[preview]") {
    World world;
    const int server = world.add_server("", true);
    Pieces pieces({"hello", " world"});
    world.request.stream = &pieces;
    SECTION("with its length") {
        world.request.headers.add("Content-Length", "11");
        CHECK(world.ask("POST").status == 504);
        CHECK(World::received(server).ends_with(
            "Content-Length: 11\r\nConnection: close\r\n\r\nhello world"));
    }
    SECTION("in chunks") {
        world.request.headers.add("Transfer-Encoding", "chunked");
        CHECK(world.ask("POST").status == 504);
        CHECK(World::received(server).ends_with("\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"));
    }
}

TEST_CASE("a server may answer before it has taken the body", "[preview]") {
    World world;
    const int server = world.add_server("HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n");
    Pieces pieces({std::string(100, 'x')});
    world.request.stream = &pieces;
    world.request.headers.add("Content-Length", "100");
    CHECK(world.ask("POST").status == 413);
    CHECK(World::received(server).ends_with("\r\n\r\n"));
}

TEST_CASE("a body that does not come is the visitor's failure", "[preview]") {
    for (const auto& [code, status] : std::vector<std::pair<ErrorCode, int>>{
             {ErrorCode::kLimitExceeded, 413},
             {ErrorCode::kTimeout, 408},
             {ErrorCode::kProtocol, 400}}) {
        World world;
        (void)world.add_server("", true);
        Pieces pieces({"hello"});
        pieces.fails_with = Error(code, "body");
        world.request.stream = &pieces;
        world.request.headers.add("Content-Length", std::to_string(kPreviewBodyBytesMax));
        CHECK(world.ask("POST").status == status);
    }
}

TEST_CASE("the first use of a port is logged, up to a bound", "[preview]") {
    std::vector<std::uint16_t> logged;
    const http::TokenAuth auth("secret");
    PreviewConfig config = World::config();
    config.log_opened = [&](const PortOpened& opened) { logged.push_back(opened.port); };
    Previews previews(auth, config);
    World world;
    for (std::size_t i = 0; i < kPreviewPortsLoggedMax + 1; ++i) {
        for (int again = 0; again < 2; ++again) {
            (void)world.add_server("HTTP/1.1 204 OK\r\n\r\n");
            world.run([&]() -> asio::awaitable<void> {
                const auto port = static_cast<std::uint16_t>(1 + i);
                (void)co_await previews.serve(world.request, world.session, port, 0);
            });
        }
    }
    CHECK(logged.size() == kPreviewPortsLoggedMax);
    CHECK(logged.front() == 1);
}

}  // namespace
}  // namespace cellkeep::preview
