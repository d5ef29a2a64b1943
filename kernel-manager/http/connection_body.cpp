// SPDX-License-Identifier: Apache-2.0
//
// How a Connection reads the body of a request.
#include "kernel-manager/http/connection_io.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <tuple>
#include <utility>

namespace cellkeep::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
using Clock = std::chrono::steady_clock;

namespace {

/// A request's unread rest that is not worth a new connection.
constexpr std::uint64_t kShortRestBytesMax = 64ULL << 10U;

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

/// How long the client may keep us waiting for a body of which so much has come.
std::chrono::milliseconds body_patience(const ConnectionLimits& limits, std::uint64_t bytes) {
    return limits.body_timeout + std::chrono::milliseconds(static_cast<std::int64_t>(
                                     bytes * 1000 / limits.body_bytes_per_second));
}

}  // namespace

std::optional<Problem> check_framing(const Headers& headers, HttpVersion version) {
    const std::string* coding = nullptr;
    int codings = 0;
    for (const auto& [name, value] : headers.all()) {
        if (equals_ignoring_case(name, "Transfer-Encoding")) {
            coding = &value;
            ++codings;
        }
    }
    if (codings == 0) {
        return std::nullopt;
    }
    if (version != HttpVersion::k11) {
        return make_problem(400, "HTTP/1.0 has no Transfer-Encoding.");
    }
    if (codings > 1 || !equals_ignoring_case(*coding, "chunked")) {
        return make_problem(501, "The only Transfer-Encoding known is chunked.");
    }
    return std::nullopt;
}

class Connection::Stream : public BodyStream {
 public:
    Stream(Connection& connection, std::uint64_t bytes_max)
        : connection_(connection), bytes_max_(bytes_max) {}
    asio::awaitable<Result<std::string_view>> read() override {
        return connection_.read_piece(bytes_max_);
    }

 private:
    Connection& connection_;
    std::uint64_t bytes_max_;
};

asio::awaitable<Result<void>> Connection::prepare_body(const Route& route, const Request& request) {
    const auto length = io_->parser->content_length();
    if (length && *length > route.body_bytes_max) {
        co_return Error(ErrorCode::kLimitExceeded, "body");
    }
    if (!io_->continue_wanted) {
        co_return ok();
    }
    if (!equals_ignoring_case(request.headers.get("Expect"), "100-continue")) {
        co_return Error(ErrorCode::kInvalidArgument, "the only expectation known is 100-continue");
    }
    set_deadline(registry_->limits().body_timeout);
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    auto [error, bytes] = co_await asio::async_write(
        *stream_, asio::buffer(kContinue.data(), kContinue.size()), kAwait);
    clear_deadline();
    io_->continue_wanted = false;
    io_->broken = static_cast<bool>(error);
    co_return ok();
}

asio::awaitable<Response> Connection::answer(const Route& route, Request& request) {
    const auto ready = co_await prepare_body(route, request);
    if (ready.has_error()) {
        if (ready.error().code() == ErrorCode::kInvalidArgument) {
            co_return to_response(make_problem(417, ready.error().message()));
        }
        Response response = too_large(route.body_bytes_max);
        set_instance(response, request.target.path);
        co_return response;
    }
    Stream stream(*this, route.body_bytes_max);
    if (route.body_mode == BodyMode::kStreamed) {
        request.stream = &stream;
        co_return co_await Application::run(route, request);
    }
    for (;;) {
        const auto piece = co_await stream.read();
        if (piece.has_error()) {
            Response response = body_failure(piece.error(), route.body_bytes_max);
            set_instance(response, request.target.path);
            co_return response;
        }
        if (piece.value().empty()) {
            break;
        }
        request.body.append(piece.value());
    }
    co_return co_await Application::run(route, request);
}

std::size_t Connection::parse_received(boost::system::error_code& error) {
    error = beast::http::error::need_more;
    if (io_->buffer.size() == 0) {
        return 0;
    }
    io_->parser->eager(false);  // as async_read_header and async_read_some have it
    const std::size_t used = io_->parser->put(io_->buffer.data(), error);
    io_->buffer.consume(used);
    return used;
}

asio::awaitable<Result<std::string_view>> Connection::read_piece(std::uint64_t bytes_max) {
    auto& parser = *io_->parser;
    io_->piece.resize(kReadBytes);
    while (!parser.is_done()) {
        if (io_->broken) {
            co_return Error(
                ErrorCode::kProtocol, "The client broke off in the middle of the body.");
        }
        auto& body = parser.get().body();
        body.data = io_->piece.data();
        body.size = io_->piece.size();
        body.more = true;
        const auto begun = Clock::now();
        // A trickle of bytes must not keep a connection: what is waited for is bounded as a whole.
        const auto left = body_patience(registry_->limits(), io_->body_bytes) - io_->body_waited;
        deadline_ = std::min(
            begun + std::min<Clock::duration>(left, registry_->limits().body_timeout),
            io_->rest_until);
        timed_out_ = deadline_ <= begun;
        auto error = boost::system::error_code(asio::error::timed_out);
        if (!timed_out_) {
            (void)parse_received(error);
        }
        if (!timed_out_ && error == beast::http::error::need_more) {
            std::size_t bytes = 0;
            std::tie(error, bytes) =
                co_await beast::http::async_read_some(*stream_, io_->buffer, parser, kAwait);
        }
        clear_deadline();
        io_->body_waited += Clock::now() - begun;
        const std::size_t got = io_->piece.size() - body.size;
        io_->body_bytes += got;
        if (error && error != beast::http::error::need_buffer) {
            io_->broken = true;
            if (timed_out_) {
                co_return Error(ErrorCode::kTimeout, "The body did not arrive in time.");
            }
            co_return Error(
                ErrorCode::kProtocol, "The body could not be read: " + error.message() + ".");
        }
        if (io_->body_bytes > bytes_max) {
            co_return Error(ErrorCode::kLimitExceeded, "body");
        }
        if (got > 0) {
            co_return std::string_view(io_->piece.data(), got);
        }
    }
    co_return std::string_view();
}

asio::awaitable<bool> Connection::skip_short_rest() {
    const auto rest = io_->parser->content_length_remaining();
    if (!rest || *rest > kShortRestBytesMax) {
        co_return false;
    }
    io_->rest_until = Clock::now() + registry_->limits().drain_timeout;
    for (;;) {
        const auto piece = co_await read_piece(UINT64_MAX);
        if (piece.has_error()) {
            co_return false;
        }
        if (piece.value().empty()) {
            co_return true;
        }
    }
}

}  // namespace cellkeep::http
