// SPDX-License-Identifier: Apache-2.0
//
// Reads what a client sent as text without keeping other clients waiting: a short text at once, a
// longer one on the server's work thread. io_context thread only.
#pragma once

#include "kernel-manager/http/message/request.hpp"
#include "protocol/support/run_elsewhere.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::http {

/// A body or message up to this length is read on the event loop; a longer one by another thread.
inline constexpr std::size_t kTextReadAtOnceBytesMax = 64ULL << 10U;

/// A pure function of the text that owns all else that it touches.
template <typename T>
using TextReader = std::function<T(std::string)>;

inline std::size_t bytes_of(const std::vector<std::string>& pieces) {
    std::size_t bytes = 0;
    for (const std::string& piece : pieces) {
        bytes += piece.size();
    }
    return bytes;
}

/// One piece is not copied. Each of several is let go as soon as it has been.
inline std::string join_text(std::vector<std::string> pieces) {
    if (pieces.size() == 1) {
        return std::move(pieces.front());
    }
    std::string text;
    text.reserve(bytes_of(pieces));
    for (std::string& piece : pieces) {
        text += std::exchange(piece, {});
    }
    return text;
}

/// What `read` makes of the text. Texts of more than kTextReadAtOnceBytesMax are read by
/// the thread, one after another, and are destroyed there with all of them that `read` has not
/// returned. thread: null reads every text at once. The caller bounds the bytes that wait: a
/// request's body and a WebSocket's message are counted (connection/arrival_memory.hpp).
template <typename T>
boost::asio::awaitable<T> read_text(
    WorkThread* thread, std::vector<std::string> pieces, TextReader<T> read) {
    if (thread == nullptr || bytes_of(pieces) <= kTextReadAtOnceBytesMax) {
        co_return read(join_text(std::move(pieces)));
    }
    const auto executor = co_await boost::asio::this_coro::executor;
    auto& io = static_cast<boost::asio::io_context&>(executor.context());
    std::function<std::optional<T>()> slice = [pieces = std::move(pieces),
                                               read = std::move(read)]() mutable {
        return std::optional<T>(read(join_text(std::move(pieces))));
    };
    T found = co_await run_elsewhere<T>(io, *thread, std::move(slice));
    co_return found;
}

template <typename T>
boost::asio::awaitable<T> read_text(WorkThread* thread, std::string text, TextReader<T> read) {
    std::vector<std::string> pieces;
    pieces.push_back(std::move(text));
    T found = co_await read_text<T>(thread, std::move(pieces), std::move(read));
    co_return found;
}

/// The same of the request's body, which is empty afterwards.
template <typename T>
boost::asio::awaitable<T> read_body(Request& request, TextReader<T> read) {
    std::string text = std::move(request.body);
    request.body.clear();
    T found = co_await read_text<T>(request.work_thread, std::move(text), std::move(read));
    co_return found;
}

}  // namespace cellkeep::http
