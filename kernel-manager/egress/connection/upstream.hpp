// SPDX-License-Identifier: Apache-2.0
//
// The side of a connection that reaches out: one connection to a host, for one request or one
// tunnel. Counts what goes and comes against the session's budget. io_context thread only.
#pragma once

#include "kernel-manager/egress/connection/connection_state.hpp"
#include "kernel-manager/egress/dial/dialer.hpp"
#include "kernel-manager/egress/message/message_reader.hpp"
#include "kernel-manager/egress/stream.hpp"

#include <boost/asio/buffer.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace cellkeep::egress {

class Upstream {
 public:
    /// The state must outlive it.
    explicit Upstream(ConnectionState& state) : state_(state) {}

    /// Connects. What was open before is let go.
    Step open(const Authority& to, bool tls);
    /// In place of open(), to a socket that another program has connected.
    void go_on(std::unique_ptr<SocketStream> stream) { stream_ = std::move(stream); }
    /// Only after open().
    Stream& stream() { return *stream_; }
    boost::asio::mutable_buffer buffer() { return boost::asio::buffer(buffer_); }
    /// Counts and writes.
    Step send(std::string text);
    /// Reads once, counts, and feeds the answer. At the end of the connection the answer must be
    /// whole. The caller has set the deadline.
    Step read(MessageReader& answer);
    /// Ends what waits, also a connection that is being made.
    void close();
    /// Lets go of the connection.
    void reset() {
        stream_.reset();
        received_.clear();
    }

 private:
    static constexpr std::size_t kReadBytes = kRelayBytesMax;

    ConnectionState& state_;
    std::unique_ptr<Stream> stream_;
    std::shared_ptr<Dialing> dialing_;  // null: no connection is being made
    std::string received_;              // not yet taken by an answer
    std::array<char, kReadBytes> buffer_{};
};

}  // namespace cellkeep::egress
