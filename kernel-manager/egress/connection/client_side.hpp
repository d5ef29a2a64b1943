// SPDX-License-Identifier: Apache-2.0
//
// The guest's side of a connection: the stream, in the clear or, once a tunnel ends here, behind
// TLS, and what came from it and is not yet used. io_context thread only.
#pragma once

#include "kernel-manager/egress/connection/connection_state.hpp"
#include "kernel-manager/egress/message/message_reader.hpp"
#include "kernel-manager/egress/stream.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace cellkeep::egress {

class ClientSide {
 public:
    /// The state must outlive it.
    ClientSide(ConnectionState& state, SocketStream::Socket socket);

    Stream& stream() { return *stream_; }
    boost::asio::mutable_buffer buffer() { return boost::asio::buffer(buffer_); }
    /// What has come and is not yet used: at most one read and a ClientHello.
    std::string& input() { return input_; }
    /// Appends one read to input().
    boost::asio::awaitable<Stream::Got> read();
    /// Whether the client has said something that has not been read.
    bool has_unread() const;
    /// Reads the head of one request; what comes after it stays in input().
    Step read_head(MessageReader& reader);
    /// Speaks TLS from now on, as a server. input() is the client's ClientHello.
    boost::asio::awaitable<boost::system::error_code> accept_tls(
        std::shared_ptr<boost::asio::ssl::context> context);
    /// Ends sending and throws away what still comes, bounded in bytes and time: closing a socket
    /// with unread bytes sends a reset, which may overtake the answer.
    boost::asio::awaitable<void> linger();

 private:
    static constexpr std::size_t kReadBytes = kRelayBytesMax;

    /// As read(), of a request's first bytes.
    boost::asio::awaitable<Stream::Got> read_first();

    ConnectionState& state_;
    std::unique_ptr<Stream> stream_;
    std::string input_;
    std::array<char, kReadBytes> buffer_{};
};

}  // namespace cellkeep::egress
