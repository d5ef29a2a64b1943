// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/text_reading.hpp"
#include "tests/unit/http/test_server.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace cellkeep::http::test {

namespace asio = boost::asio;

namespace {

using Socket = std::shared_ptr<WebSocket>;
using Log = std::shared_ptr<SocketLog>;
using Run = asio::awaitable<void> (*)(Socket, Log);

constexpr const char* kProtocol = "v1.test";

asio::awaitable<void> echo(Socket socket, Log log) {
    for (;;) {
        auto message = co_await socket->receive();
        if (message.has_error()) {
            const std::lock_guard lock(log->mutex);
            log->receive_error = message.error().code();
            co_return;
        }
        std::vector<asio::const_buffer> pieces;
        for (const std::string& piece : message.value().pieces) {
            pieces.push_back(asio::buffer(piece));
        }
        const Status sent = co_await socket->send(message.value().kind, std::move(pieces));
        if (sent.has_error()) {
            co_return;
        }
    }
}

asio::awaitable<void> flood_socket(Socket socket, Log log) {
    const std::string text(100'000, 'f');
    for (;;) {
        std::vector<asio::const_buffer> pieces;
        pieces.push_back(asio::buffer(text));
        const Status sent = co_await socket->send(WebSocketKind::kText, std::move(pieces));
        if (sent.has_error()) {
            const std::lock_guard lock(log->mutex);
            log->send_error = sent.error().code();
            co_return;
        }
    }
}

asio::awaitable<void> send_pieces(Socket socket, std::vector<std::string> texts) {
    std::vector<asio::const_buffer> pieces;
    for (const std::string& text : texts) {
        pieces.push_back(asio::buffer(text));
    }
    // Ignored: the client notices the missing message.
    (void)co_await socket->send(WebSocketKind::kBinary, std::move(pieces));
    (void)co_await socket->receive();
}

asio::awaitable<void> large(Socket socket, Log /*log*/) {
    std::vector<std::string> texts(100, std::string(400'000, 'L'));
    co_await send_pieces(std::move(socket), std::move(texts));
}

asio::awaitable<void> pieces(Socket socket, Log /*log*/) {
    std::vector<std::string> texts;
    texts.emplace_back("one");
    texts.emplace_back("two");
    texts.emplace_back("six");
    co_await send_pieces(std::move(socket), std::move(texts));
}

asio::awaitable<void> prove(Socket socket, Log /*log*/) {
    std::uint64_t proved = 0;
    socket->watch_receipt([&proved](std::uint64_t messages) { proved = messages; });
    for (;;) {
        auto message = co_await socket->receive();
        if (message.has_error()) {
            co_return;
        }
        std::string text = join_text(std::move(message.value().pieces));
        if (text == "report") {
            text = std::to_string(proved);
        } else if (text == "large") {
            text.assign(5'000'000, 'l');
        }
        std::vector<asio::const_buffer> pieces;
        pieces.push_back(asio::buffer(text));
        const Status sent = co_await socket->send(message.value().kind, std::move(pieces));
        if (sent.has_error()) {
            co_return;
        }
    }
}

asio::awaitable<void> leave(Socket socket, Log log) {
    bool leaving = false;
    for (;;) {
        auto message = co_await socket->receive();
        if (message.has_error()) {
            const std::lock_guard lock(log->mutex);
            log->receive_error = message.error().code();
            co_return;
        }
        const std::string text = join_text(std::move(message.value().pieces));
        if (leaving) {
            const std::lock_guard lock(log->mutex);
            log->heard.push_back(text);
        } else if (text == "leave") {
            leaving = true;
            socket->close_and_read_on(CloseCode::kServiceRestart, "Connect again.");
            socket->close_and_read_on(CloseCode::kNormal, "too late to count");
        }
        std::vector<asio::const_buffer> pieces;
        pieces.push_back(asio::buffer(text));
        const Status sent = co_await socket->send(WebSocketKind::kText, std::move(pieces));
        if (sent.has_error()) {
            const std::lock_guard lock(log->mutex);
            log->send_error = sent.error().code();
        }
    }
}

asio::awaitable<void> end(Socket /*socket*/, Log /*log*/) {
    co_return;
}

asio::awaitable<void> close_for_policy(Socket socket, Log /*log*/) {
    std::string reason;
    for (int i = 0; i < 100; ++i) {
        reason += "\xc3\xa9";
    }
    socket->close(CloseCode::kPolicyViolation, reason);
    socket->close(CloseCode::kNormal, "too late to count");
    co_return;
}

asio::awaitable<void> throw_up(Socket /*socket*/, Log /*log*/) {
    throw std::runtime_error("thrown by a library");
    co_return;
}

Handler make_handler(Run run, Log log) {
    return [run, log](Request& request) -> asio::awaitable<Response> {
        if (!request.websocket) {
            co_return to_response(make_problem(400, "This address wants a WebSocket."));
        }
        WebSocketUpgrade upgrade;
        const auto& offered = request.websocket->protocols;
        if (std::find(offered.begin(), offered.end(), kProtocol) != offered.end()) {
            upgrade.protocol = kProtocol;
        }
        upgrade.run = [run, log](Socket socket) -> asio::awaitable<void> {
            co_await run(std::move(socket), log);
            const std::lock_guard lock(log->mutex);
            ++log->ended;
            log->changed.notify_all();
        };
        Response response;
        response.status = 101;
        response.headers.add("X-Test", "added");
        upgrade.outlasts_pause = run == leave;
        response.body = std::move(upgrade);
        co_return response;
    };
}

}  // namespace

void add_websocket_routes(Router& router, std::shared_ptr<SocketLog> log) {
    const auto add = [&](const char* pattern, Run run) {
        router.add(Route(Access::kChange, "GET", pattern, make_handler(run, log)));
    };
    add("/echo-socket", echo);
    add("/flood-socket", flood_socket);
    add("/large-socket", large);
    add("/pieces-socket", pieces);
    add("/proving-socket", prove);
    add("/leaving-socket", leave);
    add("/ending-socket", end);
    add("/policy-socket", close_for_policy);
    add("/throwing-socket", throw_up);
}

}  // namespace cellkeep::http::test
