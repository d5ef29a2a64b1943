// SPDX-License-Identifier: Apache-2.0
//
// An answer whose length is unknown when it begins, and the client it is for: what handlers see of
// both. One io_context thread.
#pragma once

#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::http {

/// The client of a request while its answer is made.
class ClientWatch {
 public:
    ClientWatch() = default;
    ClientWatch(const ClientWatch&) = delete;
    ClientWatch& operator=(const ClientWatch&) = delete;
    virtual ~ClientWatch() = default;

    /// Calls `gone` once, as soon as the client is seen to have closed its end, from now until the
    /// answer has been sent; an empty function to hear nothing more. The callback may only take
    /// note. What the client sends ahead meanwhile is kept up to limits::kHttpAheadBytesMax; behind
    /// more than that its end is not seen.
    virtual void watch(std::function<void()> gone) = 0;
    virtual bool gone() const = 0;

    /// From now on the answer waits for one thing alone, and another program in this process could
    /// give it, or what is still to come of its body, told `what` (Request::awaited). `changed` is
    /// called when is_passed() or is_held() changes; it may only take note. An empty text: no more.
    // NOLINTNEXTLINE(performance-unnecessary-value-param): who overrides it keeps them.
    virtual void await(std::string /*what*/, std::function<void()> /*changed*/) {}
    /// The other program gives it: the handler ends, and what it answers goes nowhere.
    virtual bool is_passed() const { return false; }
    /// The other program is about to: what awaits writes nothing, so that it can pass.
    virtual bool is_held() const { return false; }
};

/// Where a StreamBody goes.
class BodyWriter : public ClientWatch {
 public:
    /// Returns when the client's socket has taken the bytes, so a slow client slows its writer and
    /// nothing piles up. kUnavailable if the client is gone, kTimeout if it took too little for
    /// limits::kHttpStreamStallMax.
    virtual boost::asio::awaitable<Status> write(std::string_view bytes) = 0;
    /// The connection is to close soon, and not because of the client. A body without an end of its
    /// own, whose client comes back for the rest, ends then.
    virtual bool is_closing() const { return false; }
    /// Calls back when that begins; an empty one: no more.
    // NOLINTNEXTLINE(performance-unnecessary-value-param): who overrides it keeps it.
    virtual void watch_closing(std::function<void()> /*closing*/) {}
};

class ByteStream;

/// The connection itself, once the head has been sent: `run` has it for itself until it returns,
/// sets its own deadlines, and the connection closes behind it. A server that stops closes the
/// stream.
struct TunnelBody {
    std::function<boost::asio::awaitable<void>(std::shared_ptr<ByteStream>)> run;
};

/// A body that `run` writes, chunked for HTTP/1.1, up to the connection's end for HTTP/1.0. When
/// run succeeds the body is complete; after an Error the connection closes in the middle of it,
/// which is how a client learns that something is missing. Not called for HEAD. run must end soon
/// after write() fails or gone() is true, and owns what it needs: the request is not its own.
struct StreamBody {
    std::function<boost::asio::awaitable<Status>(BodyWriter&)> run;
    /// Said in the head instead of chunks: run writes exactly so many bytes, or fails.
    std::optional<std::uint64_t> length = std::nullopt;
    /// Another program in this process has sent the head and what came before.
    bool goes_on = false;
};

}  // namespace cellkeep::http
