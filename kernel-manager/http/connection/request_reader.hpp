// SPDX-License-Identifier: Apache-2.0
//
// Reads the requests of one connection, one after another: the head, then the body piece by piece.
// What comes after a request stays for the next one. Wraps the parser of the HTTP library, which
// compiles slowly: for the sources of this folder only. One io_context thread.
#pragma once

#include "kernel-manager/http/connection/arrival_memory.hpp"
#include "kernel-manager/http/connection/wire.hpp"
#include "kernel-manager/http/message/head_failure.hpp"
#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/router.hpp"
#include "kernel-manager/http/websocket/handshake.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::http {

/// Why a request's length cannot be known, or nothing: the HTTP library takes a transfer coding
/// that it does not know for a request without a body, and a proxy in front may not (RFC 9112,
/// section 6.1).
std::optional<Problem> check_framing(const Headers& headers, HttpVersion version);

class RequestReader {
 public:
    explicit RequestReader(std::shared_ptr<Wire> wire);

    /// Bytes that have been received and belong to no request yet.
    std::size_t bytes_ahead() const { return buffer_.size(); }
    /// Receives at least one byte for a later request and at most `room`.
    boost::asio::awaitable<boost::system::error_code> receive_ahead(std::size_t room);

    /// Reads the head of the next request, at most limits.head_timeout long. Returns nothing if it
    /// is there; a failure of status 0 is a client that has gone.
    boost::asio::awaitable<std::optional<HeadFailure>> read_head();

    /// A request without a body that was received by another program: as if its head had come.
    void preload(std::string_view head);

    // --- of the request whose head was read
    /// The head as another reader gets it, without what says that a body follows. Not of a chunked
    /// body: what came behind it (trailers) the library has put among the head's fields.
    std::string write_head() const;
    bool is_chunked() const { return parser_->chunked(); }
    std::size_t head_bytes() const { return head_bytes_; }
    /// Method and headers.
    Request make_request() const;
    std::string_view target() const { return parser_->get().target(); }
    HttpVersion version() const {
        return parser_->get().version() == 11 ? HttpVersion::k11 : HttpVersion::kOld;
    }
    bool keep_alive() const { return parser_->keep_alive(); }
    /// The body has been read, or there is none.
    bool done() const { return parser_->is_done(); }
    /// The client waits for 100 Continue before it sends its body.
    bool continue_wanted() const { return continue_wanted_; }
    /// The body cannot be read to its end: where the next request begins is unknown.
    bool broken() const { return broken_; }
    void set_broken() { broken_ = true; }

    /// Before the body is read: says 100 Continue if the client waits for it. kLimitExceeded if the
    /// body is longer than bytes_max, kInvalidArgument if the client expects something else.
    boost::asio::awaitable<Status> admit_body(std::uint64_t bytes_max, std::string_view expect);
    /// The length of the whole body, or bytes_max if the client has not said it.
    std::uint64_t body_bytes_most(std::uint64_t bytes_max) const;
    /// As BodyStream::read(). silence_max: as in Route.
    boost::asio::awaitable<Result<std::string_view>> read_piece(
        std::uint64_t bytes_max,
        std::chrono::milliseconds silence_max = std::chrono::milliseconds(0));
    /// Reads what is left of a body if that is little. False: it is not at its end.
    boost::asio::awaitable<bool> skip_short_rest();
    /// Ends sending, and throws away what still comes: closing a socket with unread bytes sends
    /// RST, which may overtake the answer in the client's receive queue (RFC 9112, section 9.6).
    /// Bounded by limits.drain_bytes_max and drain_timeout.
    boost::asio::awaitable<void> drain();

 private:
    /// Parses what has been received already: the library would do that in another turn of the
    /// event loop. need_more: that does not suffice. Returns the bytes that it took.
    std::size_t parse_received(boost::system::error_code& error);

    std::shared_ptr<Wire> wire_;
    boost::beast::flat_buffer buffer_;
    std::optional<boost::beast::http::request_parser<boost::beast::http::buffer_body>> parser_;
    std::vector<char> piece_;
    std::size_t head_bytes_ = 0;
    std::uint64_t body_bytes_ = 0;                        // read so far
    std::chrono::steady_clock::duration body_waited_{0};  // for the client to send it
    /// When the rest of a body that no handler reads must have come.
    Deadline::Clock::time_point rest_until_ = Deadline::Clock::time_point::max();
    bool broken_ = false;
    bool continue_wanted_ = false;
};

/// The body of the present request.
class RequestBody : public BodyStream {
 public:
    /// memory: a claim that holds nothing yet.
    RequestBody(RequestReader& reader, const Route& route, ArrivalMemory::Claim memory)
        : reader_(reader),
          bytes_max_(route.body_bytes_max),
          silence_max_(route.body_silence_max),
          memory_(std::move(memory)) {}
    boost::asio::awaitable<Result<std::string_view>> read() override {
        // Others may wait for memory that is held: what fills it has a body's time.
        const bool holds = memory_.held() > 0;
        return reader_.read_piece(bytes_max_, holds ? std::chrono::milliseconds(0) : silence_max_);
    }
    boost::asio::awaitable<bool> hold(std::size_t bytes) override { return memory_.grow_to(bytes); }
    void let_go() override { memory_.release(); }

 private:
    RequestReader& reader_;
    std::uint64_t bytes_max_;
    std::chrono::milliseconds silence_max_;
    ArrivalMemory::Claim memory_;
};

}  // namespace cellkeep::http
