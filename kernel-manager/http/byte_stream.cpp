// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/byte_stream.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <array>

namespace cellkeep::http {

namespace asio = boost::asio;

namespace {

/// A view of buffers that are kept elsewhere, which Asio may copy freely.
template <typename Buffer>
struct Span {
    using value_type = Buffer;
    using const_iterator = const Buffer*;
    const_iterator begin() const { return first; }
    const_iterator end() const { return last; }
    const Buffer* first;
    const Buffer* last;
};

template <typename Buffers>
auto span_of(const Buffers& buffers) {
    return Span<typename Buffers::value_type>{buffers.data(), buffers.data() + buffers.size()};
}

}  // namespace

ByteStream::ByteStream(Socket socket, std::string peer)
    : socket_(std::move(socket)), peer_(std::move(peer)) {
    boost::system::error_code ignored;  // Ignored: without it answers are merely slower.
    (void)socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

ByteStream::~ByteStream() = default;

void ByteStream::cancel() {
    boost::system::error_code ignored;  // Ignored: a socket that is gone has nothing to cancel.
    (void)socket_.cancel(ignored);
}

void ByteStream::end_sending() {
    if (ended_at_ == Clock::time_point::max()) {
        ended_at_ = Clock::now();
    }
    boost::system::error_code ignored;  // Ignored: the peer may have gone first.
    (void)socket_.shutdown(Socket::shutdown_send, ignored);
}

void ByteStream::close() {
    boost::system::error_code ignored;  // Ignored: closing is all that is left to do.
    (void)socket_.shutdown(Socket::shutdown_both, ignored);
    (void)socket_.close(ignored);
}

void ByteStream::start_read(ReadCompletion completion) {
    const auto where = span_of(completion->buffers);
    socket_.async_read_some(
        where,
        [this, kept = std::move(completion)](
            const boost::system::error_code& error, std::size_t bytes) {
            bytes_read_ += bytes;
            kept->complete(error, bytes);
        });
}

void ByteStream::start_write(WriteCompletion completion) {
    const auto what = span_of(completion->buffers);
    socket_.async_write_some(
        what,
        [this, kept = std::move(completion)](
            const boost::system::error_code& error, std::size_t bytes) {
            bytes_written_ += bytes;
            kept->complete(error, bytes);
        });
}

void ByteStream::start_teardown(ReadCompletion completion) {
    end_sending();
    struct Drain {
        ByteStream& stream;
        ReadCompletion done;
        std::array<char, 4096> thrown_away;
        static void read(std::unique_ptr<Drain> drain) {
            auto& socket = drain->stream.socket_;
            const auto where = asio::buffer(drain->thrown_away);
            socket.async_read_some(
                where,
                [kept = std::move(drain)](
                    const boost::system::error_code& error, std::size_t /*bytes*/) mutable {
                    if (!error) {
                        read(std::move(kept));
                        return;
                    }
                    kept->stream.close();
                    kept->done->complete(
                        error == asio::error::eof ? boost::system::error_code() : error, 0);
                });
        }
    };
    Drain::read(std::unique_ptr<Drain>(new Drain{*this, std::move(completion), {}}));
}

}  // namespace cellkeep::http
