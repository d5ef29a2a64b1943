// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/connection/response_sender.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace cellkeep::http {

namespace asio = boost::asio;

namespace {

/// Without the first bytes, and without buffers that are empty then.
void remove_front(std::vector<asio::const_buffer>& buffers, std::size_t bytes) {
    auto first = buffers.begin();
    while (first != buffers.end() && bytes >= first->size()) {
        bytes -= first->size();
        ++first;
    }
    if (first != buffers.end()) {
        *first += bytes;
    }
    buffers.erase(buffers.begin(), first);
}

}  // namespace

class ResponseSender::Writer : public BodyWriter {
 public:
    Writer(ResponseSender& sender, PeerWatch& peer, Framing framing)
        : sender_(sender), peer_(peer), framing_(framing) {}

    void watch(std::function<void()> gone) override { peer_.watch(std::move(gone)); }
    bool gone() const override { return peer_.gone(); }
    bool is_closing() const override { return peer_.is_closing(); }
    void watch_closing(std::function<void()> closing) override {
        peer_.watch_closing(std::move(closing));
    }
    void await(std::string what, std::function<void()> changed) override {
        peer_.await(std::move(what), std::move(changed));
    }
    bool is_passed() const override { return peer_.is_passed(); }
    bool is_held() const override { return peer_.is_held(); }
    asio::awaitable<Status> write(std::string_view bytes) override {
        peer_.set_writing(true);
        Status written = co_await write_pieces(bytes);
        peer_.set_writing(false);
        co_return written;
    }

 private:
    asio::awaitable<Status> write_pieces(std::string_view bytes) {
        while (!bytes.empty()) {
            const std::string_view piece = bytes.substr(0, kReadBytes);
            if (failed_ || gone()) {
                co_return write_failure();
            }
            co_await sender_.turns_.next();
            const bool sent = co_await sender_.send_piece(piece, framing_);
            if (!sent) {
                failed_ = true;
                co_return write_failure();
            }
            sender_.streamed_bytes_ += piece.size();
            bytes.remove_prefix(piece.size());
        }
        co_return ok();
    }
    Error write_failure() const {
        if (sender_.wire_->deadline.expired()) {
            return {ErrorCode::kTimeout, "The client takes nothing."};
        }
        return {ErrorCode::kUnavailable, "The client has gone."};
    }

    ResponseSender& sender_;
    PeerWatch& peer_;
    Framing framing_;
    bool failed_ = false;
};

ResponseSender::ResponseSender(std::shared_ptr<Wire> wire)
    : wire_(std::move(wire)),
      turns_(asio::use_service<StreamTurns>(static_cast<asio::io_context&>(
          asio::query(wire_->stream->get_executor(), asio::execution::context)))) {}

asio::awaitable<bool> ResponseSender::send(Response& response, Sending how, PeerWatch& peer) {
    auto* stream = std::get_if<StreamBody>(&response.body);
    Framing framing = Framing::kLength;
    if (stream != nullptr && !stream->length) {
        framing = how.version == HttpVersion::k11 ? Framing::kChunked : Framing::kUntilClose;
    }
    if (stream != nullptr && stream->goes_on) {
        co_return co_await send_stream(*stream, framing, peer);
    }
    const std::string head =
        serialize_head(response, how.keep_alive ? After::kKeepAlive : After::kClose, framing);
    std::vector<asio::const_buffer> buffers{asio::buffer(head)};
    if (!how.head_only && response.status != 204) {
        if (const auto* text = std::get_if<std::string>(&response.body)) {
            buffers.push_back(asio::buffer(*text));
        } else if (const auto* pieces = std::get_if<protocol::TextPieces>(&response.body)) {
            for (const std::string_view piece : pieces->views()) {
                buffers.push_back(asio::buffer(piece.data(), piece.size()));
            }
        }
    }
    // A body of many megabytes to a slow reader is written piece by piece inside; the silence that
    // counts is the whole write's, so the deadline grows with its length (at least 64 KB a second).
    wire_->deadline.set(
        wire_->limits.body_timeout +
        std::chrono::seconds(static_cast<std::int64_t>(asio::buffer_size(buffers) / kReadBytes)));
    if (how.at_once) {
        remove_front(buffers, wire_->stream->write_at_once(buffers));
    }
    if (!buffers.empty()) {
        auto [error, bytes] = co_await asio::async_write(*wire_->stream, buffers, kAwait);
        if (error) {
            wire_->deadline.clear();
            co_return false;
        }
    }
    wire_->deadline.clear();
    const auto* file = std::get_if<FileBody>(&response.body);
    if (how.head_only || (file == nullptr && stream == nullptr)) {
        co_return true;
    }
    if (stream != nullptr) {
        co_return co_await send_stream(*stream, framing, peer);
    }
    co_return co_await send_file(*file);
}

asio::awaitable<bool> ResponseSender::send_file(const FileBody& file) {
    std::uint64_t offset = file.offset;
    std::uint64_t left = file.length;
    std::vector<char> piece(std::min<std::uint64_t>(left, kReadBytes));
    while (left > 0) {
        const std::size_t wanted =
            static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size()));
        const ssize_t got =
            ::pread(file.fd.get(), piece.data(), wanted, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            // The guest cut the file while it was being sent: the length promised cannot be kept,
            // and only a closed connection says so.
            co_return false;
        }
        co_await turns_.next();
        wire_->deadline.set(wire_->limits.body_timeout);
        auto [error, bytes] = co_await asio::async_write(
            *wire_->stream, asio::buffer(piece.data(), static_cast<std::size_t>(got)), kAwait);
        wire_->deadline.clear();
        if (error) {
            co_return false;
        }
        offset += static_cast<std::uint64_t>(got);
        left -= static_cast<std::uint64_t>(got);
    }
    co_return true;
}

asio::awaitable<bool> ResponseSender::send_piece(std::string_view bytes, Framing framing) {
    static constexpr std::string_view kEnd = "\r\n";
    std::array<char, 20> size{};
    std::array<asio::const_buffer, 3> buffers{
        asio::const_buffer(), asio::buffer(bytes.data(), bytes.size()), asio::const_buffer()};
    if (framing == Framing::kChunked) {
        const int length = std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
        buffers[0] = asio::buffer(size.data(), static_cast<std::size_t>(length));
        buffers[2] = asio::buffer(kEnd.data(), kEnd.size());
    }
    wire_->deadline.set(wire_->limits.stream_stall_max);
    auto [error, written] = co_await asio::async_write(*wire_->stream, buffers, kAwait);
    wire_->deadline.clear();
    co_return !error;
}

asio::awaitable<bool> ResponseSender::send_stream(
    StreamBody& body, Framing framing, PeerWatch& peer) {
    wire_->stream->notice_lost_peer(wire_->limits.stream_stall_max);
    peer.set_begun();
    Writer writer(*this, peer, framing);
    Status done = Error(ErrorCode::kSystem, "The body was not written.");
    try {
        done = co_await body.run(writer);
    } catch (const std::exception& failure) {
        // The head is sent: only a body that is cut off can show it.
        done = Error(ErrorCode::kSystem, failure.what());
    }
    const bool gone = writer.gone() || writer.is_passed();
    co_await peer.end();
    if (done.has_error() || gone) {
        co_return false;
    }
    if (framing != Framing::kChunked) {
        co_return true;
    }
    // The chunk of size zero and no trailers (RFC 9112, section 7.1).
    static constexpr std::string_view kLast = "0\r\n\r\n";
    wire_->deadline.set(wire_->limits.stream_stall_max);
    auto [error, written] = co_await asio::async_write(
        *wire_->stream, asio::buffer(kLast.data(), kLast.size()), kAwait);
    wire_->deadline.clear();
    co_return !error;
}

}  // namespace cellkeep::http
