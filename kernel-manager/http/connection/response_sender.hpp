// SPDX-License-Identifier: Apache-2.0
//
// Sends the responses of one connection: the head, and a body that is text, a file, or written
// while it is sent. Every write has a deadline. One io_context thread.
#pragma once

#include "kernel-manager/http/connection/peer_watch.hpp"
#include "kernel-manager/http/connection/stream_turns.hpp"
#include "kernel-manager/http/connection/wire.hpp"
#include "kernel-manager/http/message/head.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/http/websocket/handshake.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace cellkeep::http {

/// How the response to one request is sent.
struct Sending {
    bool head_only = false;
    bool keep_alive = false;
    HttpVersion version = HttpVersion::k11;
    /// What the socket takes is sent without a turn of the event loop. Not if the next request is
    /// here already: a client that sends many must not have the loop until it has all answers.
    bool at_once = false;
};

class ResponseSender {
 public:
    explicit ResponseSender(std::shared_ptr<Wire> wire);

    /// Returns false if the response is not whole: then the connection must be closed. `peer` is of
    /// the same request; a body that is written while it is sent uses it and ends it.
    boost::asio::awaitable<bool> send(Response& response, Sending how, PeerWatch& peer);
    /// Bytes of the last response that were written while it was sent.
    std::uint64_t streamed_bytes() const { return streamed_bytes_; }
    /// Before each request.
    void reset() { streamed_bytes_ = 0; }

 private:
    class Writer;  // of a body that is written while it is sent

    boost::asio::awaitable<bool> send_file(const FileBody& file);
    boost::asio::awaitable<bool> send_stream(StreamBody& body, Framing framing, PeerWatch& peer);
    boost::asio::awaitable<bool> send_piece(std::string_view bytes, Framing framing);

    std::shared_ptr<Wire> wire_;
    StreamTurns& turns_;
    std::uint64_t streamed_bytes_ = 0;
};

}  // namespace cellkeep::http
