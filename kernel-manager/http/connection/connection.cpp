// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/connection/connection.hpp"

#include "kernel-manager/http/connection/peer_watch.hpp"
#include "kernel-manager/http/connection/request_reader.hpp"
#include "kernel-manager/http/connection/response_sender.hpp"
#include "kernel-manager/http/websocket/handshake.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/write.hpp>

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace cellkeep::http {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

namespace {

/// Why a stopping server closes WebSockets. With kServiceRestart a Jupyter client comes back.
constexpr const char* kStopReason = "The server is stopping.";

Response too_large(std::uint64_t bytes_max) {
    return to_response(make_problem(
        413, "The body is longer than the " + std::to_string(bytes_max) + " bytes allowed here."));
}

Response body_failure(const Error& error, std::uint64_t bytes_max) {
    if (error.code() == ErrorCode::kLimitExceeded) {
        return too_large(bytes_max);
    }
    return to_response(
        make_problem(error.code() == ErrorCode::kTimeout ? 408 : 400, error.message()));
}

/// 503 asks the client to come back (RFC 9110, section 15.6.4).
Response no_memory() {
    return to_response(make_problem(
        503, "The bodies of other requests take all the memory that there is for them."));
}

}  // namespace

Connection::Connection(
    std::shared_ptr<ByteStream> stream,
    const Application& application,
    std::shared_ptr<ConnectionRegistry> registry,
    ConnectionAdmission admission,
    AwaitingConnection passed)
    : application_(application),
      registry_(std::move(registry)),
      admission_(admission),
      wire_(std::make_shared<Wire>(std::move(stream), registry_->limits())),
      reader_(std::make_shared<RequestReader>(wire_)),
      sender_(std::make_unique<ResponseSender>(wire_)),
      rest_(wire_->stream->get_executor()),
      awaited_(std::move(passed.awaited)),
      begun_(passed.begun) {
    reader_->preload(passed.head);
    registry_->open().insert(this);
}

Connection::~Connection() {
    registry_->open().erase(this);
}

void Connection::start() {
    asio::co_spawn(
        wire_->stream->get_executor(),
        [self = shared_from_this()] { return self->run(); },
        asio::detached);
}

void Connection::expire_if_due(Clock::time_point now) {
    if (websocket_) {
        websocket_->tick(now);
        return;
    }
    if (wire_->deadline.due(now)) {
        expire();
    }
}

void Connection::expire() {
    wire_->deadline.expire();
    wire_->stream->cancel();
}

void Connection::enter(Step step) {
    step_ = step;
    step_since_ = Clock::now();
}

void Connection::finish() {
    if (!std::exchange(finishing_, true)) {
        finishing_since_ = Clock::now();
    }
    if (websocket_) {
        websocket_->close(CloseCode::kServiceRestart, kStopReason);
    }
    if (waiting_ || tunnel_ || resting_) {
        rest_.cancel();
        abort();
    } else if (watch_) {
        watch_->announce_closing();
        watch_->hold(false);
    }
}

void Connection::abort() {
    wire_->stream->close();
}

asio::awaitable<bool> Connection::open_stream() {
    wire_->deadline.set(wire_->limits.head_timeout);
    const boost::system::error_code error = co_await wire_->stream->open();
    wire_->deadline.clear();
    if (error && registry_->log()) {
        AccessRecord record;
        record.remote = wire_->stream->peer();
        record.note =
            "TLS handshake: " + (wire_->deadline.expired() ? "not in time" : error.message());
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
    enter(Step::kEnding);
    if (next == Next::kDrain) {
        co_await reader_->drain();
    }
    if (open && !websocket_) {
        wire_->deadline.set(wire_->limits.drain_timeout);
        co_await wire_->stream->end_tls();
        wire_->deadline.clear();
    }
    abort();
}

asio::awaitable<Connection::Next> Connection::serve_one() {
    enter(Step::kWaiting);
    if (!co_await await_first_byte()) {
        co_return Next::kClose;
    }
    enter(Step::kHead);
    started_ = step_since_;
    sender_->reset();
    watch_ = std::make_shared<PeerWatch>(wire_, reader_);
    std::optional<HeadFailure> failed = co_await reader_->read_head();
    enter(Step::kRequest);
    if (failed) {
        co_return co_await refuse_head(std::move(*failed));
    }
    Response response;
    const Route* route = nullptr;
    Request request = take_request(response, route);
    if (route != nullptr) {
        request.client = watch_.get();
        response = co_await answer(*route, request);
        if (watch_->is_passed()) {
            co_return Next::kClose;  // another program answers it
        }
    }
    if (std::holds_alternative<WebSocketUpgrade>(response.body)) {
        co_return co_await serve_websocket(request, std::move(response));
    }
    if (std::holds_alternative<TunnelBody>(response.body)) {
        co_return co_await serve_tunnel(request, std::move(response));
    }
    application_.finish(request, response);
    if (!goes_on(response)) {
        record(request, response);
        co_return Next::kClose;
    }

    Sending how;
    how.head_only = request.method == "HEAD";
    how.version = reader_->version();
    how.keep_alive = reader_->keep_alive() && !reader_->broken() && !finishing_ &&
                     admission_ == ConnectionAdmission::kServe;
    const auto* stream = std::get_if<StreamBody>(&response.body);
    if (stream != nullptr && !stream->length && how.version != HttpVersion::k11) {
        how.keep_alive = false;  // its end is the connection's (RFC 9112, section 6.3)
    }
    if (how.keep_alive && !reader_->done()) {
        // A client that waits for 100 Continue may send its body or not: only a close is safe.
        how.keep_alive = false;
        if (!reader_->continue_wanted()) {
            how.keep_alive = co_await reader_->skip_short_rest();
        }
    }
    co_await watch_->end();
    how.at_once = reader_->bytes_ahead() == 0;
    const bool sent = co_await sender_->send(response, how, *watch_);
    if (watch_->is_passed()) {
        co_return Next::kClose;
    }
    record(request, response);
    served_ = true;
    if (!sent) {
        co_return Next::kClose;
    }
    // A stream may have lasted until long after the server began to stop. In a pause what was read
    // behind a request has its answer, too: the client was told that the connection stays.
    const bool is_asked = !registry_->stopping() && reader_->bytes_ahead() > 0;
    if (how.keep_alive && (!finishing_ || is_asked)) {
        co_return Next::kKeepAlive;
    }
    co_return reader_->done() && !reader_->broken() ? Next::kClose : Next::kDrain;
}

asio::awaitable<Connection::Next> Connection::refuse_head(HeadFailure failure) {
    if (failure.status == 0 || begun_) {
        co_return Next::kClose;
    }
    Request request;
    request.method = "-";
    Problem problem = make_problem(failure.status, std::move(failure.detail));
    // Of an address that did not arrive whole only the server itself can be named.
    const auto target = parse_target(reader_->target());
    problem.instance = target.has_value() ? target.value().path : "/";
    Response response = to_response(problem);
    const Sending how;
    const bool sent = co_await sender_->send(response, how, *watch_);
    record(request, response);
    co_return sent ? Next::kDrain : Next::kClose;
}

Request Connection::take_request(Response& refusal, const Route*& route) {
    Request request = reader_->make_request();
    request.same_user_peer = wire_->stream->same_user_peer();
    request.awaited = std::exchange(awaited_, {});
    Application::Admission admission = application_.admit(request, reader_->target());
    const HttpVersion version = reader_->version();
    HandshakeView handshake = inspect_handshake(request, version);
    // A client waits for the answer before it sends more (RFC 6455, section 4.1).
    if (reader_->done() && reader_->bytes_ahead() == 0) {
        request.websocket = std::move(handshake.offer);
    }
    if (auto problem = check_framing(request.headers, version)) {
        reader_->set_broken();
        problem->instance = request.target.path;
        refusal = to_response(*problem);
    } else if (admission_ == ConnectionAdmission::kServerFull) {
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

asio::awaitable<Response> Connection::answer(const Route& route, Request& request) {
    const auto ready =
        co_await reader_->admit_body(route.body_bytes_max, request.headers.get("Expect"));
    if (ready.has_error()) {
        if (ready.error().code() == ErrorCode::kInvalidArgument) {
            co_return to_response(make_problem(417, ready.error().message()));
        }
        Response response = too_large(route.body_bytes_max);
        set_instance(response, request.target.path);
        co_return response;
    }
    if (route.body_mode == BodyMode::kStreamed) {
        RequestBody stream(
            *reader_, route, registry_->arrivals().make_claim(request.principal.name));
        request.stream = &stream;
        co_return co_await Application::run(route, request);
    }
    // Held until the handler is done with the body.
    ArrivalMemory::Claim memory = registry_->arrivals().make_claim(request.principal.name);
    std::optional<Response> refusal = co_await read_body(route, request, memory);
    if (refusal.has_value()) {
        set_instance(*refusal, request.target.path);
        co_return std::move(*refusal);
    }
    co_return co_await Application::run(route, request);
}

asio::awaitable<std::optional<Response>> Connection::read_body(
    const Route& route, Request& request, ArrivalMemory::Claim& memory) {
    for (;;) {
        const auto piece = co_await reader_->read_piece(route.body_bytes_max);
        if (piece.has_error()) {
            co_return body_failure(piece.error(), route.body_bytes_max);
        }
        if (piece.value().empty()) {
            co_return std::nullopt;
        }
        const std::size_t bytes = request.body.size() + piece.value().size();
        if (bytes > registry_->limits().arrival_free_bytes_max && memory.held() == 0) {
            const std::uint64_t most = reader_->body_bytes_most(route.body_bytes_max);
            const bool granted = co_await memory.grow_to(most);
            if (!granted) {
                co_return no_memory();
            }
            request.body.reserve(most);
        }
        request.body.append(piece.value());
    }
}

asio::awaitable<Connection::Next> Connection::serve_websocket(Request& request, Response response) {
    CELLKEEP_CHECK(request.websocket.has_value() && response.status == 101);
    auto& upgrade = std::get<WebSocketUpgrade>(response.body);
    WebSocketAnswer handshake{
        std::string(request.headers.get("Sec-WebSocket-Key")),
        std::move(upgrade.protocol),
        std::move(response.headers)};
    wire_->deadline.set(wire_->limits.body_timeout);
    auto session = co_await WebSocketSession::accept(
        wire_->stream,
        std::move(handshake),
        wire_->limits,
        registry_->arrivals().make_claim(request.principal.name));
    wire_->deadline.clear();
    record(request, response);
    if (!session) {
        co_return Next::kClose;
    }
    websocket_ = std::move(session);
    // An open WebSocket needs none of what reads requests.
    watch_.reset();
    reader_.reset();
    outlasts_pause_ = upgrade.outlasts_pause;
    if (finishing_ && (!outlasts_pause_ || registry_->stopping())) {
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

asio::awaitable<Connection::Next> Connection::serve_tunnel(Request& request, Response response) {
    co_await watch_->end();
    const std::string head = serialize_head(response, After::kTunnel, Framing::kUntilClose);
    wire_->deadline.set(wire_->limits.body_timeout);
    auto [error, bytes] = co_await asio::async_write(*wire_->stream, asio::buffer(head), kAwait);
    wire_->deadline.clear();
    record(request, response);
    // What comes before the answer is nothing that the other side could have asked for.
    if (error || finishing_ || reader_->bytes_ahead() > 0) {
        co_return Next::kClose;
    }
    tunnel_ = true;
    // An open tunnel needs none of what reads requests.
    watch_.reset();
    reader_.reset();
    const auto tunnel = std::get<TunnelBody>(std::move(response.body));
    std::shared_ptr<ByteStream> stream = wire_->stream;
    try {
        co_await tunnel.run(std::move(stream));
    } catch (const std::exception&) {
        abort();  // The other side sees that it has ended.
    }
    co_return Next::kClose;
}

void Connection::record(const Request& request, const Response& response) {
    if (!registry_->log()) {
        return;
    }
    AccessRecord record;
    record.remote = wire_->stream->peer();
    record.method = request.method;
    record.path = request.target.path;
    record.principal = request.principal.name;
    record.status = response.status;
    const bool streams = std::holds_alternative<StreamBody>(response.body);
    record.bytes = streams ? sender_->streamed_bytes() : response.content_length();
    record.duration =
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - started_);
    registry_->log()(record);
}

}  // namespace cellkeep::http
