// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/connection.hpp"

#include "kernel-manager/http/connection_io.hpp"
#include "kernel-manager/http/connection_watch.hpp"
#include "kernel-manager/http/handshake.hpp"
#include "kernel-manager/http/head.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>
#include <tuple>
#include <utility>

namespace cellkeep::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
using Clock = std::chrono::steady_clock;

namespace {

/// Why a stopping server closes WebSockets. With kServiceRestart a Jupyter client comes back.
constexpr const char* kStopReason = "The server is stopping.";

struct HeadFailure {
    int status = 0;  // 0: nothing to say, the client is gone
    std::string detail;
};

std::string head_too_large() {
    return "The request line and headers are longer than " +
           std::to_string(limits::kHttpHeadBytesMax) + " bytes.";
}

HeadFailure explain(const boost::system::error_code& failure) {
    using beast::http::error;
    if (failure.category() != beast::http::make_error_code(error::end_of_stream).category()) {
        return {};
    }
    switch (static_cast<error>(failure.value())) {
        case error::end_of_stream:
        case error::partial_message:
            return {};
        case error::header_limit:
        case error::buffer_overflow:
            return {431, head_too_large()};
        case error::bad_version:
            return {505, "Only HTTP/1.0 and HTTP/1.1 are spoken here."};
        default:
            return {400, "The request is not HTTP: " + failure.message() + "."};
    }
}

}  // namespace

Connection::Connection(
    std::shared_ptr<ByteStream> stream,
    const Application& application,
    std::shared_ptr<ConnectionRegistry> registry,
    Admittance admittance)
    : stream_(std::move(stream)),
      application_(application),
      registry_(std::move(registry)),
      admittance_(admittance),
      io_(std::make_unique<Io>(registry_->limits().head_bytes_max)) {
    registry_->open().insert(this);
}

Connection::~Connection() {
    registry_->open().erase(this);
}

void Connection::start() {
    asio::co_spawn(
        stream_->get_executor(),
        [self = shared_from_this()] { return self->run(); },
        asio::detached);
}

void Connection::set_deadline(std::chrono::milliseconds from_now) {
    deadline_ = Clock::now() + from_now;
}

void Connection::clear_deadline() {
    deadline_ = Clock::time_point::max();
}

void Connection::expire_if_due(Clock::time_point now) {
    if (websocket_) {
        websocket_->tick(now);
        return;
    }
    if (now < deadline_) {
        return;
    }
    timed_out_ = true;
    stream_->cancel();
}

void Connection::finish() {
    finishing_ = true;
    if (websocket_) {
        websocket_->close(CloseCode::kServiceRestart, kStopReason);
    }
    if (waiting_) {
        abort();
    }
}

void Connection::abort() {
    stream_->close();
}

asio::awaitable<bool> Connection::open_stream() {
    set_deadline(registry_->limits().head_timeout);
    const boost::system::error_code error = co_await stream_->open();
    clear_deadline();
    if (error && registry_->log()) {
        AccessRecord record;
        record.remote = stream_->peer();
        record.note = "TLS handshake: " + (timed_out_ ? "not in time" : error.message());
        registry_->log()(record);
    }
    co_return !error;
}

asio::awaitable<void> Connection::run() {
    const bool open = co_await open_stream();
    Next next = open ? Next::kKeepAlive : Next::kClose;
    while (next == Next::kKeepAlive) {
        next = co_await serve_one();
    }
    if (next == Next::kDrain) {
        co_await drain();
    }
    if (open && !websocket_) {
        set_deadline(registry_->limits().drain_timeout);
        co_await stream_->end_tls();
        clear_deadline();
    }
    abort();
}

asio::awaitable<bool> Connection::await_first_byte() {
    if (io_->buffer.size() > 0) {
        co_return true;
    }
    waiting_ = true;
    set_deadline(registry_->limits().idle_timeout);
    auto [error, bytes] =
        co_await stream_->async_read_some(io_->buffer.prepare(kReadBytes / 4), kAwait);
    waiting_ = false;
    io_->buffer.commit(bytes);
    co_return !error && !finishing_;
}

asio::awaitable<Connection::Next> Connection::refuse_head(int error_status, std::string detail) {
    Request request;
    request.method = "-";
    Problem problem = make_problem(error_status, std::move(detail));
    // Of an address that did not arrive whole only the server itself can be named.
    const auto target = parse_target(std::string_view(io_->parser->get().target()));
    problem.instance = target.has_value() ? target.value().path : "/";
    Response response = to_response(problem);
    const bool sent = co_await send(response, /*head_only=*/false, /*keep_alive=*/false);
    record(request, response);
    co_return sent ? Next::kDrain : Next::kClose;
}

asio::awaitable<std::optional<Connection::Next>> Connection::read_head() {
    timed_out_ = false;
    set_deadline(registry_->limits().head_timeout);
    io_->parser.emplace();
    io_->body_bytes = 0;
    io_->body_waited = {};
    io_->rest_until = Clock::time_point::max();
    io_->streamed = 0;
    io_->broken = false;
    auto& parser = *io_->parser;
    // The library's count leaves out some line ends: it bounds the reading, the exact one is below.
    const std::size_t head_bytes_max = registry_->limits().head_bytes_max;
    parser.header_limit(static_cast<std::uint32_t>(head_bytes_max + 1));
    parser.body_limit(boost::none);
    boost::system::error_code error;
    std::size_t bytes = parse_received(error);
    if (error == beast::http::error::need_more) {
        std::size_t more = 0;
        std::tie(error, more) =
            co_await beast::http::async_read_header(*stream_, io_->buffer, parser, kAwait);
        bytes += more;
    }
    clear_deadline();
    HeadFailure failure;
    if (timed_out_) {
        failure = {408, "The request head did not arrive in time."};
    } else if (error) {
        failure = explain(error);
    } else if (bytes > head_bytes_max) {
        failure = {431, head_too_large()};
    } else {
        co_return std::nullopt;
    }
    if (failure.status == 0) {
        co_return Next::kClose;
    }
    co_return co_await refuse_head(failure.status, std::move(failure.detail));
}

asio::awaitable<Connection::Next> Connection::serve_one() {
    if (!co_await await_first_byte()) {
        co_return Next::kClose;
    }
    started_ = Clock::now();
    const std::optional<Next> failed = co_await read_head();
    if (failed) {
        co_return *failed;
    }
    auto& parser = *io_->parser;
    Response response;
    const Route* route = nullptr;
    Request request = take_request(response, route);
    if (route != nullptr) {
        watch_ = std::make_unique<Watch>(*this);
        request.client = watch_.get();
        response = co_await answer(*route, request);
    }
    if (std::holds_alternative<WebSocketUpgrade>(response.body)) {
        co_return co_await serve_websocket(request, std::move(response));
    }
    application_.finish(request, response);

    bool keep_alive =
        parser.keep_alive() && !io_->broken && !finishing_ && admittance_ == Admittance::kServe;
    if (std::holds_alternative<StreamBody>(response.body) && parser.get().version() != 11) {
        keep_alive = false;  // its end is the connection's (RFC 9112, section 6.3)
    }
    if (keep_alive && !parser.is_done()) {
        // A client that waits for 100 Continue may send its body or not: only a close is safe.
        keep_alive = false;
        if (!io_->continue_wanted) {
            keep_alive = co_await skip_short_rest();
        }
    }
    co_await end_watch();
    const bool sent = co_await send(response, request.method == "HEAD", keep_alive);
    record(request, response);
    if (!sent) {
        co_return Next::kClose;
    }
    // A stream may have lasted until long after the server began to stop.
    if (keep_alive && !finishing_) {
        co_return Next::kKeepAlive;
    }
    co_return parser.is_done() && !io_->broken ? Next::kClose : Next::kDrain;
}

Request Connection::take_request(Response& refusal, const Route*& route) {
    auto& parser = *io_->parser;
    Request request;
    request.method = std::string(parser.get().method_string());
    for (const auto& field : parser.get()) {
        request.headers.add(std::string(field.name_string()), std::string(field.value()));
    }
    request.same_user_peer = stream_->same_user_peer();
    Application::Admission admission =
        application_.admit(request, std::string_view(parser.get().target()));
    io_->continue_wanted = request.headers.find("Expect") != nullptr && !parser.is_done();
    const auto version = parser.get().version() == 11 ? HttpVersion::k11 : HttpVersion::kOld;
    HandshakeView handshake = inspect_handshake(request, version);
    // A client waits for the answer before it sends more (RFC 6455, section 4.1).
    if (parser.is_done() && io_->buffer.size() == 0) {
        request.websocket = std::move(handshake.offer);
    }
    if (auto problem = check_framing(request.headers, version)) {
        // Nobody knows where the next request begins.
        io_->broken = true;
        problem->instance = request.target.path;
        refusal = to_response(*problem);
    } else if (admittance_ == Admittance::kServerFull) {
        refusal = to_response(make_problem(503, "Too many open connections."));
        set_instance(refusal, request.target.path);
    } else if (admission.route != nullptr && handshake.version_unknown) {
        refusal = make_version_refusal();
        set_instance(refusal, request.target.path);
    } else {
        refusal = std::move(admission.refusal);
        route = admission.route;
    }
    return request;
}

asio::awaitable<Connection::Next> Connection::serve_websocket(Request& request, Response response) {
    CELLKEEP_CHECK(request.websocket.has_value() && response.status == 101);
    auto& upgrade = std::get<WebSocketUpgrade>(response.body);
    WebSocketAnswer handshake{
        std::string(request.headers.get("Sec-WebSocket-Key")),
        std::move(upgrade.protocol),
        std::move(response.headers)};
    set_deadline(registry_->limits().body_timeout);
    auto session =
        co_await WebSocketSession::accept(stream_, std::move(handshake), registry_->limits());
    clear_deadline();
    record(request, response);
    if (!session) {
        co_return Next::kClose;
    }
    websocket_ = std::move(session);
    io_.reset();  // an open WebSocket needs none of it
    if (finishing_) {
        websocket_->close(CloseCode::kServiceRestart, kStopReason);
    }
    try {
        co_await upgrade.run(websocket_);
    } catch (const std::exception& failure) {
        websocket_->close(CloseCode::kInternalError, failure.what());
    }
    co_await websocket_->finish();
    co_return Next::kClose;
}

asio::awaitable<bool> Connection::send(Response& response, bool head_only, bool keep_alive) {
    auto* stream = std::get_if<StreamBody>(&response.body);
    Framing framing = Framing::kLength;
    if (stream != nullptr) {
        framing = io_->parser->get().version() == 11 ? Framing::kChunked : Framing::kUntilClose;
    }
    const std::string head =
        serialize_head(response, keep_alive ? After::kKeepAlive : After::kClose, framing);
    std::vector<asio::const_buffer> buffers{asio::buffer(head)};
    if (!head_only && response.status != 204) {
        if (const auto* text = std::get_if<std::string>(&response.body)) {
            buffers.push_back(asio::buffer(*text));
        } else if (const auto* pieces = std::get_if<protocol::TextPieces>(&response.body)) {
            for (const std::string_view piece : pieces->views()) {
                buffers.push_back(asio::buffer(piece.data(), piece.size()));
            }
        }
    }
    // A body of many megabytes to a slow reader is written piece by piece inside; the silence that
    // counts is the whole write's, so the deadline grows with its length (at least 64 KB a second).
    timed_out_ = false;
    set_deadline(
        registry_->limits().body_timeout +
        std::chrono::seconds(static_cast<std::int64_t>(asio::buffer_size(buffers) / kReadBytes)));
    auto [error, bytes] = co_await asio::async_write(*stream_, buffers, kAwait);
    clear_deadline();
    if (error) {
        co_return false;
    }
    const auto* file = std::get_if<FileBody>(&response.body);
    if (head_only || (file == nullptr && stream == nullptr)) {
        co_return true;
    }
    if (stream != nullptr) {
        co_return co_await send_stream(*stream, framing);
    }
    co_return co_await send_file(*file);
}

asio::awaitable<void> Connection::drain() {
    // Closing a socket with unread bytes sends RST, which may overtake the answer in the client's
    // receive queue (RFC 9112, section 9.6): say that we are done, then read what still comes.
    stream_->end_sending();
    boost::system::error_code error;
    std::uint64_t drained = io_->buffer.size();
    io_->buffer.clear();
    io_->piece.resize(kReadBytes);
    set_deadline(registry_->limits().drain_timeout);
    while (!error && drained < registry_->limits().drain_bytes_max && Clock::now() < deadline_) {
        auto [failed, bytes] = co_await stream_->async_read_some(asio::buffer(io_->piece), kAwait);
        error = failed;
        drained += bytes;
    }
    clear_deadline();
}

void Connection::record(const Request& request, const Response& response) {
    if (!registry_->log()) {
        return;
    }
    AccessRecord record;
    record.remote = stream_->peer();
    record.method = request.method;
    record.path = request.target.path;
    record.principal = request.principal.name;
    record.status = response.status;
    record.bytes = response.content_length() + io_->streamed;
    record.duration =
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - started_);
    registry_->log()(record);
}

}  // namespace cellkeep::http
