// SPDX-License-Identifier: Apache-2.0
//
// One HTTP request as plain values, free of any HTTP library. It lives in its connection's
// coroutine; handlers get it by reference and must not keep it.
#pragma once

#include "kernel-manager/http/access/principal.hpp"
#include "kernel-manager/http/message/headers.hpp"
#include "kernel-manager/http/message/streaming.hpp"
#include "kernel-manager/http/message/target.hpp"
#include "kernel-manager/http/websocket/websocket.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::http {

/// A request body that is read piece by piece, for uploads.
class BodyStream {
 public:
    BodyStream() = default;
    BodyStream(const BodyStream&) = delete;
    BodyStream& operator=(const BodyStream&) = delete;
    virtual ~BodyStream() = default;
    /// The next bytes, valid until the next call; empty at the end. kLimitExceeded past the route's
    /// bound, kTimeout when the client is slower than limits::kHttpBodyTimeout allows, kProtocol if
    /// the client broke off.
    virtual boost::asio::awaitable<Result<std::string_view>> read() = 0;
    /// Before the handler keeps more than limits::kArrivalFreeBytesMax of what it has read: counts
    /// that many bytes in all for the client (connection/arrival_memory.hpp), until let_go() or the
    /// end of the request. False: they are not to be had, and nothing more may be kept.
    virtual boost::asio::awaitable<bool> hold(std::size_t /*bytes*/) { co_return true; }
    virtual void let_go() {}
};

struct Request {
    std::string method;  // upper case as sent; HEAD is served by the GET route
    Target target;
    Headers headers;
    std::string body;  // whole, unless the route streams
    /// What the handler of another program in this process waited for when it passed the request on
    /// (ClientWatch::await); it has read the body. Empty: the request is new.
    std::string awaited;
    BodyStream* stream = nullptr;   // only if the route streams
    ClientWatch* client = nullptr;  // null: that the client goes is not seen
    /// Reads long bodies and messages (text_reading.hpp); there as long as the server. Null: they
    /// are read at once.
    WorkThread* work_thread = nullptr;
    std::map<std::string, std::string, std::less<>> captures;  // from the route's pattern
    Principal principal;
    /// It came over a Unix socket from a process of the server's own user (SO_PEERCRED, unix(7)).
    bool same_user_peer = false;
    /// Set if the request is a well-formed WebSocket handshake (RFC 6455, section 4.2.1).
    std::optional<WebSocketOffer> websocket;

    /// A capture of the matched pattern; "" if the pattern has none of that name.
    std::string capture(std::string_view name) const {
        const auto found = captures.find(name);
        return found == captures.end() ? std::string() : found->second;
    }
};

}  // namespace cellkeep::http
