// SPDX-License-Identifier: Apache-2.0
//
// How a Connection sends what is not in memory when the answer begins: a file, or a body that is
// written while it is sent. And how it sees its client go meanwhile.
#include "kernel-manager/http/connection_io.hpp"
#include "kernel-manager/http/connection_watch.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

namespace cellkeep::http {

namespace asio = boost::asio;

class Connection::Writer : public BodyWriter {
 public:
    Writer(Connection& connection, Framing framing) : connection_(connection), framing_(framing) {}

    void watch(std::function<void()> gone) override { connection_.begin_watch(std::move(gone)); }
    bool gone() const override { return connection_.watch_->gone(); }
    asio::awaitable<Status> write(std::string_view bytes) override {
        while (!bytes.empty()) {
            const std::string_view piece = bytes.substr(0, kReadBytes);
            if (failed_ || gone()) {
                co_return write_failure();
            }
            const bool sent = co_await connection_.send_piece(piece, framing_);
            if (!sent) {
                failed_ = true;
                co_return write_failure();
            }
            connection_.io_->streamed += piece.size();
            bytes.remove_prefix(piece.size());
        }
        co_return ok();
    }

 private:
    Error write_failure() const {
        if (connection_.timed_out_) {
            return {ErrorCode::kTimeout, "The client takes nothing."};
        }
        return {ErrorCode::kUnavailable, "The client has gone."};
    }

    Connection& connection_;
    Framing framing_;
    bool failed_ = false;
};

asio::awaitable<bool> Connection::send_file(const FileBody& file) {
    std::uint64_t offset = file.offset;
    std::uint64_t left = file.length;
    io_->piece.resize(kReadBytes);
    while (left > 0) {
        const std::size_t wanted =
            static_cast<std::size_t>(std::min<std::uint64_t>(left, io_->piece.size()));
        const ssize_t got =
            ::pread(file.fd.get(), io_->piece.data(), wanted, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            // The guest cut the file while it was being sent: the length promised cannot be kept,
            // and only a closed connection says so.
            co_return false;
        }
        set_deadline(registry_->limits().body_timeout);
        auto [error, bytes] = co_await asio::async_write(
            *stream_, asio::buffer(io_->piece.data(), static_cast<std::size_t>(got)), kAwait);
        clear_deadline();
        if (error) {
            co_return false;
        }
        offset += static_cast<std::uint64_t>(got);
        left -= static_cast<std::uint64_t>(got);
    }
    co_return true;
}

asio::awaitable<bool> Connection::send_piece(std::string_view bytes, Framing framing) {
    static constexpr std::string_view kEnd = "\r\n";
    std::array<char, 20> size{};
    std::array<asio::const_buffer, 3> buffers{
        asio::const_buffer(), asio::buffer(bytes.data(), bytes.size()), asio::const_buffer()};
    if (framing == Framing::kChunked) {
        const int length = std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
        buffers[0] = asio::buffer(size.data(), static_cast<std::size_t>(length));
        buffers[2] = asio::buffer(kEnd.data(), kEnd.size());
    }
    timed_out_ = false;
    set_deadline(registry_->limits().stream_stall_max);
    auto [error, written] = co_await asio::async_write(*stream_, buffers, kAwait);
    clear_deadline();
    co_return !error;
}

asio::awaitable<bool> Connection::send_stream(StreamBody& body, Framing framing) {
    if (!watch_) {
        watch_ = std::make_unique<Watch>(*this);
    }
    stream_->notice_lost_peer(registry_->limits().stream_stall_max);
    Writer writer(*this, framing);
    Status done = Error(ErrorCode::kSystem, "The body was not written.");
    try {
        done = co_await body.run(writer);
    } catch (const std::exception& failure) {
        // The head is sent: only a body that is cut off can tell.
        done = Error(ErrorCode::kSystem, failure.what());
    }
    const bool gone = writer.gone();
    co_await end_watch();
    if (done.has_error() || gone) {
        co_return false;
    }
    if (framing == Framing::kUntilClose) {
        co_return true;
    }
    // The chunk of size zero and no trailers (RFC 9112, section 7.1).
    static constexpr std::string_view kLast = "0\r\n\r\n";
    set_deadline(registry_->limits().stream_stall_max);
    auto [error, written] =
        co_await asio::async_write(*stream_, asio::buffer(kLast.data(), kLast.size()), kAwait);
    clear_deadline();
    co_return !error;
}

void Connection::begin_watch(std::function<void()> gone) {
    Watch& watch = *watch_;
    watch.on_gone_ = std::move(gone);
    if (watch.gone_) {
        if (watch.on_gone_) {
            watch.on_gone_();
        }
        return;
    }
    // In the middle of a request's body the read is not ours.
    if (watch.running_ || !watch.on_gone_ || !io_->parser->is_done()) {
        return;
    }
    watch.running_ = true;
    stream_->notice_lost_peer(registry_->limits().stream_stall_max);
    asio::co_spawn(
        stream_->get_executor(),
        [self = shared_from_this()] { return self->run_watch(); },
        asio::detached);
}

asio::awaitable<void> Connection::run_watch() {
    // The connection's coroutine waits for the end of this one before it lets go of the watch.
    Watch& watch = *watch_;
    const std::size_t most = registry_->limits().ahead_bytes_max;
    boost::system::error_code error;
    while (!watch.stopping_ && !error && io_->buffer.size() < most) {
        const std::size_t room = std::min(kReadBytes / 4, most - io_->buffer.size());
        auto [failed, got] = co_await stream_->async_read_some(io_->buffer.prepare(room), kAwait);
        io_->buffer.commit(got);
        error = failed;
    }
    if (error && !watch.stopping_) {
        watch.set_gone();
    }
    watch.running_ = false;
    watch.ended_.cancel();
}

asio::awaitable<void> Connection::end_watch() {
    if (!watch_) {
        co_return;
    }
    watch_->on_gone_ = nullptr;
    watch_->stopping_ = true;
    while (watch_->running_) {
        stream_->cancel();
        (void)co_await watch_->ended_.async_wait(kAwait);  // Ignored: being cancelled is the news.
    }
    watch_->stopping_ = false;
}

}  // namespace cellkeep::http
