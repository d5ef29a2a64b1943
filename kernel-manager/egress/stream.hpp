// SPDX-License-Identifier: Apache-2.0
//
// A connected byte stream, in the clear or behind TLS, as the proxy's coroutines use it. It must
// outlive its operations; at most one read and one write at a time. io_context thread only.
#pragma once

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

    /// For poll(2); it stays this stream's.
    int handle() { return socket_.native_handle(); }
    /// For a stream on top of it; afterwards this one is only good for being destroyed.
    Socket release() { return std::move(socket_); }

 private:
    Socket socket_;
};

}  // namespace cellkeep::egress
