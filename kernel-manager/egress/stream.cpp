// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/stream.hpp"

#include "protocol/support/await.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;

SocketStream::SocketStream(Socket socket) : socket_(std::move(socket)) {
    boost::system::error_code ignored;  // Ignored: without it answers are merely slower.
    (void)socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    // Ignored: cannot fail on an open descriptor (ioctl(2)).
    (void)socket_.non_blocking(true, ignored);
}

asio::awaitable<Stream::Got> SocketStream::read_some(asio::mutable_buffer where) {
    auto [error, bytes] = co_await socket_.async_read_some(where, kAwait);
    co_return Got{error, bytes};
}

asio::awaitable<boost::system::error_code> SocketStream::write(std::string_view text) {
    auto [error, bytes] =
        co_await asio::async_write(socket_, asio::buffer(text.data(), text.size()), kAwait);
    co_return error;
}

asio::awaitable<boost::system::error_code> SocketStream::wait_readable() {
    auto [error] = co_await socket_.async_wait(Socket::wait_read, kAwait);
    co_return error;
}

asio::awaitable<boost::system::error_code> SocketStream::wait_writable() {
    auto [error] = co_await socket_.async_wait(Socket::wait_write, kAwait);
    co_return error;
}

Stream::Got SocketStream::read_now(asio::mutable_buffer where) {
    Got got;
    got.bytes = socket_.read_some(where, got.error);
    return got;
}

Stream::Got SocketStream::write_now(std::string_view text) {
    Got put;
    put.bytes = socket_.write_some(asio::buffer(text.data(), text.size()), put.error);
    return put;
}

UniqueFd SocketStream::give_away() {
    boost::system::error_code error;
    const int fd = socket_.release(error);
    return error ? UniqueFd() : UniqueFd(fd);
}

void SocketStream::end_sending() {
    boost::system::error_code ignored;  // Ignored: the peer may have gone first.
    (void)socket_.shutdown(Socket::shutdown_send, ignored);
}

asio::awaitable<void> SocketStream::finish() {
    end_sending();
    co_return;
}

void SocketStream::cancel() {
    boost::system::error_code ignored;  // Ignored: a socket that is gone has nothing to cancel.
    (void)socket_.cancel(ignored);
}

void SocketStream::close() {
    boost::system::error_code ignored;  // Ignored: closing is all that is left to do.
    (void)socket_.close(ignored);
}

}  // namespace cellkeep::egress
