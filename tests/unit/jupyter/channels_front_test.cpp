// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/channels/channels_front.hpp"

#include "tests/unit/jupyter/fake_socket.hpp"
#include "tests/unit/jupyter/journal_session.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::jupyter::test {
namespace {

namespace asio = boost::asio;
using http::CloseCode;

constexpr const char* kKernel = "5e0b0a3c-0000-4000-8000-000000000001";

/// One session.
class OneSession : public session::SessionService {
 public:
    std::shared_ptr<JournalSession> session = std::make_shared<JournalSession>();

    asio::awaitable<Result<std::shared_ptr<session::Session>>> create(
        session::SessionOptions /*options*/) override {
        co_return Error(ErrorCode::kUnavailable, "the channels front makes no sessions");
    }
    std::shared_ptr<session::Session> find(const std::string& id) const override {
        return id == kKernel ? session : nullptr;
    }
    std::vector<std::shared_ptr<session::Session>> list() const override { return {session}; }
    Status remove(const std::string& /*id*/) override { return ok(); }
    std::vector<std::string> languages() const override { return {}; }
    const session::KernelSpec* find_spec(const std::string& /*language*/) const override {
        return nullptr;
    }
    session::LimitCeilings ceilings() const override { return {}; }
    bool ready() const override { return true; }
};

struct FrontFixture {
    static http::Request make_request() {
        http::Request request;
        request.method = "GET";
        request.captures["id"] = kKernel;
        request.principal = {"owner", http::Role::kAgent};
        request.websocket = http::WebSocketOffer{};
        return request;
    }
    http::Response open(http::Request request) {
        http::Response response;
        const auto run = [&]() -> asio::awaitable<void> {
            response = co_await front.open(request);
        };
        asio::co_spawn(io, run, [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
        settle();
        return response;
    }
    std::shared_ptr<FakeSocket> connect(http::Request request) {
        const http::Response response = open(std::move(request));
        REQUIRE(response.status == 101);
        auto socket = std::make_shared<FakeSocket>(io);
        asio::co_spawn(
            io,
            std::get<http::WebSocketUpgrade>(response.body).run(socket),
            [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
        settle();
        return socket;
    }
    void settle() {
        io.restart();
        (void)io.poll();
    }

    asio::io_context io{1};
    OneSession backend;
    ChannelsFront front{io, backend};
};

nlohmann::json body_of(const http::Response& response) {
    return nlohmann::json::parse(std::get<std::string>(response.body));
}

TEST_CASE("a kernel that does not exist is 404 in Jupyter's words", "[channels][front]") {
    FrontFixture f;
    http::Request request = FrontFixture::make_request();
    request.captures["id"] = "unknown";
    const http::Response unknown = f.open(request);
    CHECK(unknown.status == 404);
    CHECK(body_of(unknown)["message"] == "Kernel does not exist: unknown");
    CHECK(body_of(unknown).contains("reason"));
    request = FrontFixture::make_request();
    request.principal.name = "somebody else";
    CHECK(f.open(request).status == 404);
    request.principal.role = http::Role::kAdmin;
    CHECK(f.open(request).status == 101);
}

TEST_CASE("a request that is no WebSocket, or has a wrong query, is 400", "[channels][front]") {
    FrontFixture f;
    http::Request plain = FrontFixture::make_request();
    plain.websocket.reset();
    CHECK(f.open(plain).status == 400);
    const auto status = [&f](const std::string& name, const std::string& value) {
        http::Request request = FrontFixture::make_request();
        request.target.query[name] = value;
        return f.open(request).status;
    };
    CHECK(status("replay", "everything") == 400);
    CHECK(status("replay", "all") == 101);
    CHECK(status("replay", "running") == 101);
    CHECK(status("replay", "none") == 101);
    CHECK(status("session_id", std::string(limits::kHeaderFieldBytesMax, 's')) == 101);
    CHECK(status("session_id", std::string(limits::kHeaderFieldBytesMax + 1, 's')) == 400);
    CHECK(status("since", std::string(limits::kHeaderFieldBytesMax + 1, 's')) == 400);
    CHECK(status("1763773200000", "") == 101);
}

TEST_CASE("v1 is chosen whenever it is offered, else none", "[channels][front]") {
    FrontFixture f;
    const auto chosen = [&f](std::vector<std::string> offered) {
        http::Request request = FrontFixture::make_request();
        request.websocket->protocols = std::move(offered);
        return std::get<http::WebSocketUpgrade>(f.open(request).body).protocol;
    };
    CHECK(chosen({std::string(kV1Protocol)}) == kV1Protocol);
    CHECK(chosen({"other", std::string(kV1Protocol)}) == kV1Protocol);
    CHECK(chosen({"other"}).empty());
    CHECK(chosen({}).empty());
}

TEST_CASE("a gateway's client gets text also for buffers", "[channels][front]") {
    FrontFixture f;
    http::Request request = FrontFixture::make_request();
    const auto plain = f.connect(request);
    request.headers.add("User-Agent", "Tornado/6.5.1");
    const auto gateway = f.connect(request);
    f.backend.session->publish_bytes(1, 10);
    f.settle();
    CHECK(plain->got.back().kind == http::WebSocketKind::kBinary);
    CHECK(gateway->got.back().kind == http::WebSocketKind::kText);
    CHECK(f.front.find_log(f.backend.session->id())->count(PeerEvent::kUndeliverable) == 1);
}

TEST_CASE("the place of a client is its principal's", "[channels][front]") {
    FrontFixture f;
    http::Request request = FrontFixture::make_request();
    request.target.query["session_id"] = "s";
    const auto first = f.connect(request);
    request.principal = {"admin", http::Role::kAdmin};
    const auto other = f.connect(request);
    CHECK_FALSE(first->closed.has_value());
    other->prove(1);
    const auto again = f.connect(request);
    CHECK(other->closed == CloseCode::kNormal);
    CHECK_FALSE(again->closed.has_value());
}

TEST_CASE(
    "a client that lost what it had is asked again what its cell waits for", "[channels][front]") {
    FrontFixture f;
    f.backend.session->open_question = protocol::Message::make(
        protocol::Channel::kStdin,
        protocol::make_header("input_request", "kernel", "user"),
        {{"msg_id", "cell"}, {"msg_type", "execute_request"}, {"session", "s"}},
        {{"prompt", "q? "}, {"password", false}});
    const auto asked = [&f](const FakeSocket& socket) {
        f.settle();
        return std::count_if(socket.got.begin(), socket.got.end(), [](const auto& message) {
            return std::string_view(message.data).find("input_request") != std::string_view::npos;
        });
    };
    http::Request request = FrontFixture::make_request();
    request.target.query["session_id"] = "s";
    const auto first = f.connect(request);
    CHECK(asked(*first) == 1);  // it is new here, as after the server forgot its place
    first->prove(static_cast<std::uint64_t>(first->got.size()));
    auto last = f.connect(request);
    CHECK(asked(*last) == 0);  // back at its place, having read the question
    for (const char* replay : {"running", "all", "none"}) {
        CAPTURE(replay);
        last->cut();
        f.settle();
        request.target.query["replay"] = replay;
        last = f.connect(request);
        CHECK(asked(*last) == 1);  // once, also where it still waits to be sent
    }
    http::Request other = FrontFixture::make_request();
    CHECK(asked(*f.connect(other)) == 0);
    other.target.query["session_id"] = "another";
    CHECK(asked(*f.connect(other)) == 0);
    f.backend.session->open_question.reset();
    request.target.query["session_id"] = "t";
    CHECK(asked(*f.connect(request)) == 0);
}

TEST_CASE("the end of a session closes its sockets and tells why", "[channels][front]") {
    FrontFixture f;
    const std::string id = f.backend.session->id();
    f.front.on_session_closed(id);  // no client has connected: nothing happens
    const auto socket = f.connect(FrontFixture::make_request());
    f.backend.session->close({session::Death::Kind::kOom, 0});
    f.front.on_session_closed(id);
    f.settle();
    CHECK(socket->closed == CloseCode::kNormal);
    CHECK(socket->reason == session::describe({session::Death::Kind::kOom, 0}));
    CHECK(f.front.find_log(id) == nullptr);
}

TEST_CASE("a server that shuts down says so", "[channels][front]") {
    FrontFixture f;
    const auto socket = f.connect(FrontFixture::make_request());
    f.front.announce_shutdown();
    f.front.on_session_closed(f.backend.session->id());
    f.settle();
    CHECK(socket->closed == CloseCode::kGoingAway);
    CHECK_FALSE(socket->reason.empty());
}

TEST_CASE("clients of all sessions part, and their places pass", "[channels][front]") {
    FrontFixture f;
    const session::Session& session = *f.backend.session;
    CHECK_FALSE(f.front.find_work(session).has_value());
    http::Request request = FrontFixture::make_request();
    request.target.query["session_id"] = "s";
    CHECK(std::get<http::WebSocketUpgrade>(f.open(request).body).outlasts_pause);
    const auto socket = f.connect(request);
    socket->prove(socket->got.size());
    f.front.part();
    CHECK(socket->asked_to_leave == CloseCode::kServiceRestart);
    CHECK(f.front.find_work(session).has_value());
    socket->cut();
    f.settle();
    f.front.end_parting();
    CHECK_FALSE(f.front.find_work(session).has_value());
    (void)f.backend.session->say("meanwhile");
    nlohmann::json passed = f.front.pass_on();
    REQUIRE(passed.size() == 1);
    CHECK(f.front.pass_on().empty());
    f.settle();
    CHECK(f.io.stopped());  // nothing of it waits any more
    passed["ses_that_was_not_taken_over"] = passed[kKernel] = *passed.begin();
    passed.erase(session.id());
    ChannelsFront next(f.io, f.backend);
    next.go_on(passed);
    CHECK(next.pass_on().size() == 1);
    CHECK_THROWS_AS(next.go_on({{kKernel, 7}}), nlohmann::json::exception);
}

TEST_CASE("the route is where Jupyter clients look for it", "[channels][front]") {
    FrontFixture f;
    http::Router router;
    f.front.add_to(router);
    const auto match = router.match("GET", {"api", "kernels", kKernel, "channels"});
    REQUIRE(match.route != nullptr);
    CHECK(match.captures.at("id") == kKernel);
    CHECK(match.route->access == http::Access::kChange);
}

}  // namespace
}  // namespace cellkeep::jupyter::test
