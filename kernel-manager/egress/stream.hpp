// SPDX-License-Identifier: Apache-2.0
//
// A connected byte stream, in the clear or behind TLS, as the proxy's coroutines use it. It must
// outlive its operations; at most one read and one write at a time. io_context thread only.
#pragma once

#include "protocol/support/unique_fd.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <string_view>

namespace cellkeep::egress {

class Stream {
 public:
    struct Got {
        boost::system::error_code error;  // also at the end
        std::size_t bytes = 0;
    };

    Stream() = default;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    virtual ~Stream() = default;

    virtual boost::asio::awaitable<Got> read_some(boost::asio::mutable_buffer where) = 0;
    /// All of it; the text must live until then.
    virtual boost::asio::awaitable<boost::system::error_code> write(std::string_view text) = 0;
    /// We send no more; what the peer says still comes.
    virtual void end_sending() = 0;
    /// Says goodbye as the protocol wants it.
    virtual boost::asio::awaitable<void> finish() = 0;
    /// What waits ends with an error; the stream stays open.
    virtual void cancel() = 0;
    /// At once; what waits ends with an error.
    virtual void close() = 0;
    /// For poll(2) and ioctl(2); it stays this stream's.
    virtual int handle() = 0;
};

class SocketStream final : public Stream {
 public:
    using Socket = boost::asio::ip::tcp::socket;

    explicit SocketStream(Socket socket);
    boost::asio::awaitable<Got> read_some(boost::asio::mutable_buffer where) override;
    boost::asio::awaitable<boost::system::error_code> write(std::string_view text) override;
    void end_sending() override;
    boost::asio::awaitable<void> finish() override;
    void cancel() override;
    void close() override;

    /// Until there is something to read, the end and a failure included. Takes nothing of it.
    boost::asio::awaitable<boost::system::error_code> wait_readable();
    boost::asio::awaitable<boost::system::error_code> wait_writable();
    /// What is there, and what there is room for, now; would_block if that is nothing.
    Got read_now(boost::asio::mutable_buffer where);
    Got write_now(std::string_view text);

    int handle() override { return socket_.native_handle(); }
    /// For a stream on top of it; afterwards this one is only good for being destroyed.
    Socket release() { return std::move(socket_); }
    /// The socket, open as it is. What waits ends with an error; nothing of it is sent or read.
    UniqueFd give_away();

 private:
    Socket socket_;
};

}  // namespace cellkeep::egress
