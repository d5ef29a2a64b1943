// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/socket/byte_stream.hpp"
#include "protocol/support/await.hpp"
#include "tests/unit/http/test_server.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::http::test {

namespace asio = boost::asio;

namespace {

using Log = std::shared_ptr<SocketLog>;
using Timer = asio::steady_timer;
/// The timers of the handlers that wait to be released. For the server's thread only.
using Held = std::shared_ptr<std::vector<std::weak_ptr<Timer>>>;

void note_end(const Log& log, const Status& status) {
    const std::lock_guard lock(log->mutex);
    if (status.has_error()) {
        log->send_error = status.error().code();
    }
    ++log->ended;
    log->changed.notify_all();
}

asio::awaitable<Status> write_lines(BodyWriter& writer) {
    for (int i = 0; i < 10; ++i) {
        const std::string line = "line " + std::to_string(i) + "\n";
        Status written = co_await writer.write(line);
        BOOST_OUTCOME_CO_TRY(std::move(written));
    }
    co_return ok();
}

asio::awaitable<Status> flood_body(BodyWriter& writer, Log log) {
    const std::string text(300'000, 'f');
    Status status = ok();
    while (status.has_value()) {
        status = co_await writer.write(text);
    }
    note_end(log, status);
    co_return status;
}

/// Sends back what comes, until "." comes.
asio::awaitable<void> echo_bytes(std::shared_ptr<ByteStream> stream) {
    std::array<char, 256> buffer{};
    bool more = true;
    while (more) {
        const auto [ended, bytes] = co_await stream->async_read_some(asio::buffer(buffer), kAwait);
        const auto [failed, written] =
            co_await asio::async_write(*stream, asio::buffer(buffer.data(), bytes), kAwait);
        more = !ended && !failed && std::string_view(buffer.data(), bytes) != ".";
    }
}

asio::awaitable<Response> open_tunnel(Request& /*request*/) {
    Response response;
    response.status = 101;
    response.headers.add("Upgrade", "echo");
    response.body = TunnelBody{echo_bytes};
    co_return response;
}

asio::awaitable<Response> pass_on(Request& /*request*/) {
    Response response;
    response.status = 404;
    response.foreign = true;
    response.headers.add("Location", "/there");
    response.body = StreamBody{write_lines, 70};
    co_return response;
}

asio::awaitable<Status> write_nothing(BodyWriter& /*writer*/) {
    co_return ok();
}

asio::awaitable<Status> cut(BodyWriter& writer) {
    Status written = co_await writer.write("part");
    BOOST_OUTCOME_CO_TRY(std::move(written));
    co_return Error(ErrorCode::kSystem, "cut off on purpose");
}

asio::awaitable<Status> throw_inside(BodyWriter& writer) {
    Status written = co_await writer.write("part");
    BOOST_OUTCOME_CO_TRY(std::move(written));
    throw std::runtime_error("thrown in the middle");
}

void note_gone(const Log& log) {
    const std::lock_guard lock(log->mutex);
    ++log->gone;
    log->changed.notify_all();
}

/// True if it was released, false if the client went first.
asio::awaitable<bool> hold(ClientWatch& client, Held held, Log log) {
    const auto timer =
        std::make_shared<Timer>(co_await asio::this_coro::executor, Timer::time_point::max());
    held->push_back(timer);
    client.watch([timer] { timer->cancel(); });
    if (!client.gone()) {
        boost::system::error_code cancelled;  // that is how both wake us
        co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
    client.watch({});
    if (client.gone()) {
        note_gone(log);
        co_return false;
    }
    co_return true;
}

asio::awaitable<Status> hold_stream(BodyWriter& writer, Held held, Log log) {
    Status written = co_await writer.write("begun\n");
    BOOST_OUTCOME_CO_TRY(std::move(written));
    const bool released = co_await hold(writer, held, log);
    if (released) {
        Status last = co_await writer.write("released\n");
        BOOST_OUTCOME_CO_TRY(std::move(last));
    }
    note_end(log, ok());
    co_return ok();
}

/// Until the connection is to close.
asio::awaitable<Status> write_until_closing(BodyWriter& writer) {
    const auto timer =
        std::make_shared<Timer>(co_await asio::this_coro::executor, Timer::time_point::max());
    Status written = co_await writer.write("begun\n");
    BOOST_OUTCOME_CO_TRY(std::move(written));
    writer.watch_closing([timer] { timer->cancel(); });
    if (!writer.is_closing()) {
        boost::system::error_code cancelled;  // that is how it wakes us
        co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
    writer.watch_closing({});
    co_return co_await writer.write("left\n");
}

asio::awaitable<Response> watch(Request& request, Held held, Log log) {
    Response response;
    const bool released = co_await hold(*request.client, held, log);
    response.body = std::string(released ? "released" : "gone");
    co_return response;
}

void note_awaiting(const Log& log) {
    const std::lock_guard lock(log->mutex);
    ++log->awaiting;
    log->changed.notify_all();
}

/// True if it was released, false if the request has passed to another program.
asio::awaitable<bool> hold_or_pass(ClientWatch& client, std::string what, Held held, Log log) {
    const auto timer =
        std::make_shared<Timer>(co_await asio::this_coro::executor, Timer::time_point::max());
    client.await(std::move(what), [timer, &client] {
        if (client.is_passed()) {
            timer->cancel();
        }
    });
    held->push_back(timer);
    client.watch([log] { note_gone(log); });
    note_awaiting(log);
    boost::system::error_code woken;  // that is how both wake us
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, woken));
    client.watch({});
    client.await({}, nullptr);
    co_return !client.is_passed();
}

asio::awaitable<Response> await_answer(Request& request, Held held, Log log) {
    Response response;
    response.body = "answered: " + request.awaited;
    if (request.awaited.empty()) {
        const bool released = co_await hold_or_pass(*request.client, "thing", held, log);
        response.body = std::string(released ? "here" : "nowhere");
    }
    co_return response;
}

asio::awaitable<Status> await_in_stream(BodyWriter& writer, Held held, Log log) {
    Status written = co_await writer.write("begun\n");
    BOOST_OUTCOME_CO_TRY(std::move(written));
    const bool released = co_await hold_or_pass(writer, "place 1", held, log);
    if (!released) {
        co_return Error(ErrorCode::kUnavailable, "passed");
    }
    co_return co_await writer.write("here\n");
}

asio::awaitable<Response> await_stream(Request& request, Held held, Log log) {
    Response response;
    if (request.awaited.empty()) {
        response.body = StreamBody{
            [held, log](BodyWriter& writer) { return await_in_stream(writer, held, log); }};
        co_return response;
    }
    if (request.headers.find("X-Refused") != nullptr) {
        co_return make_empty(204);
    }
    StreamBody rest{[awaited = request.awaited](BodyWriter& writer) -> asio::awaitable<Status> {
        co_return co_await writer.write("there: " + awaited + "\n");
    }};
    rest.goes_on = true;
    response.body = std::move(rest);
    co_return response;
}

}  // namespace

void add_stream_routes(Router& router, Log log) {
    const auto held = std::make_shared<std::vector<std::weak_ptr<Timer>>>();
    const auto stream =
        [&router](const char* path, std::function<asio::awaitable<Status>(BodyWriter&)> run) {
            Handler handler = [run](Request& /*request*/) -> asio::awaitable<Response> {
                Response response;
                response.headers.add("Content-Type", "text/plain");
                response.body = StreamBody{run};
                co_return response;
            };
            router.add(Route(Access::kRead, "GET", path, std::move(handler)));
        };
    stream("/stream/lines", write_lines);
    stream("/stream/until_closing", write_until_closing);
    stream("/stream/empty", write_nothing);
    stream("/stream/cut", cut);
    stream("/stream/throw", throw_inside);
    stream("/stream/flood", [log](BodyWriter& writer) { return flood_body(writer, log); });
    stream(
        "/stream/hold", [held, log](BodyWriter& writer) { return hold_stream(writer, held, log); });
    router.add(Route(Access::kChange, "POST", "/stream/watch", [held, log](Request& request) {
        return watch(request, held, log);
    }));
    router.add(Route(Access::kChange, "POST", "/stream/await", [held, log](Request& request) {
        return await_answer(request, held, log);
    }));
    router.add(Route(Access::kRead, "GET", "/stream/await", [held, log](Request& request) {
        return await_stream(request, held, log);
    }));
    router.add(Route(Access::kRead, "GET", "/stream/foreign", pass_on));
    router.add(Route(Access::kRead, "GET", "/tunnel", open_tunnel));
    Handler release = [held](Request& /*request*/) -> asio::awaitable<Response> {
        for (const auto& one : std::exchange(*held, {})) {
            if (const auto timer = one.lock()) {
                timer->cancel();
            }
        }
        co_return make_empty(204);
    };
    router.add(Route(Access::kChange, "GET", "/stream/release", std::move(release)));
}

}  // namespace cellkeep::http::test
