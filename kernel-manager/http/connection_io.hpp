// SPDX-License-Identifier: Apache-2.0
//
// What a Connection keeps of the HTTP library: its buffer and the parser of the current request.
// For connection.cpp, connection_body.cpp and connection_stream.cpp only: the library compiles
// slowly.
#pragma once

#include "kernel-manager/http/connection.hpp"
#include "kernel-manager/http/handshake.hpp"
#include "kernel-manager/http/problem.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cellkeep::http {

/// Failures of asynchronous operations are values, not exceptions.
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);
/// One read or write of a body.
inline constexpr std::size_t kReadBytes = 64ULL << 10U;

/// Why a request's length cannot be known, or nothing: the HTTP library takes a transfer coding
/// that it does not know for a request without a body, and a proxy in front may not (RFC 9112,
/// section 6.1).
std::optional<Problem> check_framing(const Headers& headers, HttpVersion version);

struct Connection::Io {
    explicit Io(std::size_t head_bytes_max) : buffer(head_bytes_max + kReadBytes) {}
    boost::beast::flat_buffer buffer;
    std::optional<boost::beast::http::request_parser<boost::beast::http::buffer_body>> parser;
    std::vector<char> piece;
    std::uint64_t body_bytes = 0;                        // read so far
    std::chrono::steady_clock::duration body_waited{0};  // for the client to send it
    // When the rest of a body that nobody wants must have come.
    std::chrono::steady_clock::time_point rest_until = std::chrono::steady_clock::time_point::max();
    bool broken = false;           // the body cannot be read to its end
    bool continue_wanted = false;  // the client waits for 100 Continue
    std::uint64_t streamed = 0;    // bytes of a body that is written while it is sent
};

}  // namespace cellkeep::http
