// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/connection/request_reader.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>

#include <algorithm>
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

/// How long the client may take altogether to send a body of which `bytes` have come.
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

RequestReader::RequestReader(std::shared_ptr<Wire> wire)
    : wire_(std::move(wire)), buffer_(wire_->limits.head_bytes_max + kReadBytes) {}

asio::awaitable<boost::system::error_code> RequestReader::receive_ahead(std::size_t room) {
    auto [error, bytes] = co_await wire_->stream->async_read_some(
        buffer_.prepare(std::min(room, kReadBytes / 4)), kAwait);
    buffer_.commit(bytes);
    co_return error;
}

asio::awaitable<std::optional<HeadFailure>> RequestReader::read_head() {
    Deadline& deadline = wire_->deadline;
    deadline.set(wire_->limits.head_timeout);
    parser_.emplace();
    body_bytes_ = 0;
    body_waited_ = {};
    rest_until_ = Clock::time_point::max();
    broken_ = false;
    // The library's count leaves out some line ends: it bounds the reading, the exact one is below.
    const std::size_t head_bytes_max = wire_->limits.head_bytes_max;
    parser_->header_limit(static_cast<std::uint32_t>(head_bytes_max + 1));
    parser_->body_limit(boost::none);
    boost::system::error_code error;
    std::size_t bytes = parse_received(error);
    if (error == beast::http::error::need_more) {
        std::size_t more = 0;
        std::tie(error, more) =
            co_await beast::http::async_read_header(*wire_->stream, buffer_, *parser_, kAwait);
        bytes += more;
    }
    deadline.clear();
    head_bytes_ = bytes;
    HeadFailure failure;
    if (deadline.expired()) {
        failure = {408, "The request head did not arrive in time."};
    } else if (error) {
        failure = explain_head_failure(error);
    } else if (bytes > head_bytes_max) {
        failure = {431, head_too_large()};
    } else {
        continue_wanted_ = parser_->get().find("Expect") != parser_->get().end() && !done();
        co_return std::nullopt;
    }
    co_return failure;
}

void RequestReader::preload(std::string_view head) {
    const std::size_t copied =
        asio::buffer_copy(buffer_.prepare(head.size()), asio::buffer(head.data(), head.size()));
    buffer_.commit(copied);
}

std::string RequestReader::write_head() const {
    const auto& request = parser_->get();
    std::string head(request.method_string());
    head.append(" ").append(request.target());
    head.append(version() == HttpVersion::k11 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
    for (const auto& field : request) {
        const std::string_view name = field.name_string();
        const bool is_of_body = equals_ignoring_case(name, "Content-Length") ||
                                equals_ignoring_case(name, "Transfer-Encoding") ||
                                equals_ignoring_case(name, "Expect");
        if (!is_of_body) {
            head.append(name).append(": ").append(field.value()).append("\r\n");
        }
    }
    return head + "\r\n";
}

Request RequestReader::make_request() const {
    Request request;
    request.method = std::string(parser_->get().method_string());
    for (const auto& field : parser_->get()) {
        request.headers.add(std::string(field.name_string()), std::string(field.value()));
    }
    return request;
}

asio::awaitable<Status> RequestReader::admit_body(
    std::uint64_t bytes_max, std::string_view expect) {
    const auto length = parser_->content_length();
    if (length && *length > bytes_max) {
        co_return Error(ErrorCode::kLimitExceeded, "body");
    }
    if (!continue_wanted_) {
        co_return ok();
    }
    if (!equals_ignoring_case(expect, "100-continue")) {
        co_return Error(ErrorCode::kInvalidArgument, "the only expectation known is 100-continue");
    }
    wire_->deadline.set(wire_->limits.body_timeout);
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    auto [error, bytes] = co_await asio::async_write(
        *wire_->stream, asio::buffer(kContinue.data(), kContinue.size()), kAwait);
    wire_->deadline.clear();
    continue_wanted_ = false;
    broken_ = static_cast<bool>(error);
    co_return ok();
}

std::size_t RequestReader::parse_received(boost::system::error_code& error) {
    error = beast::http::error::need_more;
    if (buffer_.size() == 0) {
        return 0;
    }
    parser_->eager(false);  // as async_read_header and async_read_some have it
    const std::size_t used = parser_->put(buffer_.data(), error);
    buffer_.consume(used);
    return used;
}

std::uint64_t RequestReader::body_bytes_most(std::uint64_t bytes_max) const {
    const auto length = parser_->content_length();
    return length ? std::min<std::uint64_t>(*length, bytes_max) : bytes_max;
}

asio::awaitable<Result<std::string_view>> RequestReader::read_piece(
    std::uint64_t bytes_max, std::chrono::milliseconds silence_max) {
    const ConnectionLimits& limits = wire_->limits;
    Deadline& deadline = wire_->deadline;
    piece_.resize(kReadBytes);
    while (!parser_->is_done()) {
        if (broken_) {
            co_return Error(
                ErrorCode::kProtocol, "The client broke off in the middle of the body.");
        }
        auto& body = parser_->get().body();
        body.data = piece_.data();
        body.size = piece_.size();
        body.more = true;
        const auto begun = Clock::now();
        // A trickle of bytes must not keep a connection: what is waited for is bounded as a whole,
        // unless the body is meant to stay open.
        const auto left = body_patience(limits, body_bytes_) - body_waited_;
        const Clock::duration patience = silence_max.count() > 0
                                             ? Clock::duration(silence_max)
                                             : std::min<Clock::duration>(left, limits.body_timeout);
        deadline.set_at(std::min(begun + patience, rest_until_));
        auto error = boost::system::error_code(asio::error::timed_out);
        if (deadline.due(begun)) {
            deadline.expire();
        } else {
            (void)parse_received(error);
        }
        if (!deadline.expired() && error == beast::http::error::need_more) {
            std::size_t bytes = 0;
            std::tie(error, bytes) =
                co_await beast::http::async_read_some(*wire_->stream, buffer_, *parser_, kAwait);
        }
        deadline.clear();
        if (silence_max.count() == 0) {
            body_waited_ += Clock::now() - begun;
        }
        const std::size_t got = piece_.size() - body.size;
        body_bytes_ += got;
        if (error && error != beast::http::error::need_buffer) {
            broken_ = true;
            if (deadline.expired()) {
                co_return Error(ErrorCode::kTimeout, "The body did not arrive in time.");
            }
            co_return Error(
                ErrorCode::kProtocol, "The body could not be read: " + error.message() + ".");
        }
        if (body_bytes_ > bytes_max) {
            co_return Error(ErrorCode::kLimitExceeded, "body");
        }
        if (got > 0) {
            co_return std::string_view(piece_.data(), got);
        }
    }
    co_return std::string_view();
}

asio::awaitable<bool> RequestReader::skip_short_rest() {
    const auto rest = parser_->content_length_remaining();
    if (!rest || *rest > kShortRestBytesMax) {
        co_return false;
    }
    rest_until_ = Clock::now() + wire_->limits.drain_timeout;
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

asio::awaitable<void> RequestReader::drain() {
    wire_->stream->end_sending();
    boost::system::error_code error;
    std::uint64_t drained = buffer_.size();
    buffer_.clear();
    piece_.resize(kReadBytes);
    Deadline& deadline = wire_->deadline;
    deadline.set(wire_->limits.drain_timeout);
    while (!error && drained < wire_->limits.drain_bytes_max && !deadline.due(Clock::now())) {
        auto [failed, bytes] =
            co_await wire_->stream->async_read_some(asio::buffer(piece_), kAwait);
        error = failed;
        drained += bytes;
    }
    deadline.clear();
}

}  // namespace cellkeep::http
