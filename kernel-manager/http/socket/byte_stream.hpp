// SPDX-License-Identifier: Apache-2.0
//
// The socket below an HTTP connection, a server's or a client's: one type for every transport, so
// that the HTTP library is compiled once. Models Beast's AsyncStream; what depends on the transport
// is in byte_stream.cpp. It counts bytes, so that a watcher can tell a slow peer from a dead one.
// One io_context thread; at most one read and one write at a time; it must outlive both.
#pragma once

#include "kernel-manager/http/socket/tls.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/websocket/teardown.hpp>
#include <boost/container/small_vector.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace cellkeep::http {

class Transport;

class ByteStream {
 public:
    using Socket = boost::asio::generic::stream_protocol::socket;
    using executor_type = boost::asio::any_io_executor;
    using Clock = std::chrono::steady_clock;

    struct Peer {
        std::string name;        // for the log
        bool same_user = false;  // over a Unix socket, a process of the server's own user
    };

    /// tls: null for none. The socket is connected, or connect() comes first.
    ByteStream(Socket socket, Peer peer, std::shared_ptr<TlsContext> tls = nullptr);
    ByteStream(const ByteStream&) = delete;
    ByteStream& operator=(const ByteStream&) = delete;
    ~ByteStream();

    executor_type get_executor();
    const std::string& peer() const { return peer_.name; }
    bool same_user_peer() const { return peer_.same_user; }
    /// So far.
    std::uint64_t bytes_read() const { return bytes_read_; }
    std::uint64_t bytes_written() const { return bytes_written_; }
    /// When we said that we send no more, or time_point::max().
    Clock::time_point ended_at() const { return ended_at_; }

    /// For a client.
    boost::asio::awaitable<boost::system::error_code> connect(Socket::endpoint_type endpoint);
    /// Of the server that a client has connected to, after open(). With TLS only.
    std::string peer_certificate_sha256();

    /// The TLS handshake, if there is one: before anything is read or written.
    boost::asio::awaitable<boost::system::error_code> open();
    /// The TLS goodbye, if there is one: before close(). Ends when the peer has answered or gone.
    boost::asio::awaitable<void> end_tls();
    /// Fails the operations that are waiting; the stream stays open.
    void cancel();
    /// From now on a peer that is lost without a word fails what waits, soon after it stops
    /// acknowledging (tcp(7), TCP_USER_TIMEOUT and keep-alive). Nothing to do on a Unix socket.
    void notice_lost_peer(std::chrono::milliseconds unacknowledged_max);
    /// Says that we send no more; the peer may go on. (TLS cannot say that and then go on reading:
    /// there it is only noted.)
    void end_sending();
    /// Ends both directions and the operations that are waiting.
    void close();
    bool has_tls() const;
    /// The socket, for another owner, which goes on with what has come and was not read. This one
    /// is closed then, and the peer notices nothing. Not with TLS, whose state is here.
    UniqueFd release();
    /// Something has come that nobody has read.
    bool has_input() const;

    /// Sends what the socket takes at this moment, at most limits::kHttpWriteAtOnceBytesMax, and
    /// returns how many bytes that was: without a turn of the event loop. 0 where TLS or a failure
    /// is in the way: async_write_some() goes on and reports it. No write may be waiting.
    std::size_t write_at_once(std::span<const boost::asio::const_buffer> buffers);

    /// A WebSocket message whose first frame, as the library writes it, has this payload (by
    /// address) takes `inside` with it: the frame is marked as not the last one, and behind its
    /// payload follow `inside`, whole control frames, and an empty last frame (RFC 6455, section
    /// 5.4). In the same system call if it fits. One message at a time; it must be written whole by
    /// one operation.
    void insert_into_message(
        const void* payload, std::size_t payload_bytes, const std::string& inside);
    /// The WebSocket library's next ping with this payload leaves as a close frame with it, and is
    /// the last that leaves: what is written behind it goes nowhere. The library itself would read
    /// no message any more once it has sent a close frame.
    void turn_ping_into_close(const std::string& payload);

    template <typename Buffers, typename Token>
    auto async_read_some(const Buffers& buffers, Token&& token) {
        return boost::asio::async_initiate<Token, Signature>(
            [this](auto handler, const Buffers& where) {
                start_read(make_completion<boost::asio::mutable_buffer>(where, std::move(handler)));
            },
            token,
            buffers);
    }
    /// Gathers: everything that fits leaves in one piece.
    template <typename Buffers, typename Token>
    auto async_write_some(const Buffers& buffers, Token&& token) {
        return boost::asio::async_initiate<Token, Signature>(
            [this](auto handler, const Buffers& what) {
                start_write(make_completion<boost::asio::const_buffer>(what, std::move(handler)));
            },
            token,
            buffers);
    }

    /// How the WebSocket library ends a connection: ends sending and reads what still comes
    /// (closing a socket with unread bytes sends RST, which may overtake the close frame). Ends
    /// when the peer closes or the watcher of ended_at() calls close().
    template <typename Handler>
    friend void async_teardown(
        boost::beast::role_type /*role*/, ByteStream& stream, Handler&& handler) {
        stream.start_teardown(make_completion<boost::asio::mutable_buffer>(
            boost::asio::mutable_buffer(),
            [kept = std::forward<Handler>(handler)](
                const boost::system::error_code& error, std::size_t /*bytes*/) mutable {
                std::move(kept)(error);
            }));
    }
    friend void beast_close_socket(ByteStream& stream) { stream.close(); }

 private:
    using Signature = void(boost::system::error_code, std::size_t);

    /// What waits for one operation: its buffers (at most what one system call takes) and handler.
    template <typename Buffer>
    struct Completion {
        Completion() = default;
        Completion(const Completion&) = delete;
        Completion& operator=(const Completion&) = delete;
        virtual ~Completion() = default;
        /// Called once; may destroy the completion's owner.
        virtual void complete(const boost::system::error_code& error, std::size_t bytes) = 0;
        boost::container::small_vector<Buffer, 8> buffers;
    };
    using ReadCompletion = std::unique_ptr<Completion<boost::asio::mutable_buffer>>;
    using WriteCompletion = std::unique_ptr<Completion<boost::asio::const_buffer>>;

    /// IOV_MAX is 1024; Asio itself takes 64 buffers at a time.
    static constexpr std::size_t kBuffersMax = 64;

    template <typename Buffer, typename Buffers, typename Handler>
    static std::unique_ptr<Completion<Buffer>> make_completion(
        const Buffers& buffers, Handler handler) {
        struct Waiting : Completion<Buffer> {
            explicit Waiting(Handler kept) : handler(std::move(kept)) {}
            void complete(const boost::system::error_code& error, std::size_t bytes) override {
                // Everything is on one thread, and never inside the call that started it: the
                // handler may be called as it stands.
                Handler last = std::move(handler);
                std::move(last)(error, bytes);
            }
            Handler handler;
        };
        auto waiting = std::make_unique<Waiting>(std::move(handler));
        const auto end = boost::asio::buffer_sequence_end(buffers);
        for (auto at = boost::asio::buffer_sequence_begin(buffers);
             at != end && waiting->buffers.size() < kBuffersMax;
             ++at) {
            if (const Buffer buffer(*at); buffer.size() > 0) {
                waiting->buffers.push_back(buffer);
            }
        }
        return waiting;
    }

    /// A message that control frames are put into.
    struct Insertion {
        const void* payload = nullptr;  // null: none
        std::size_t payload_bytes = 0;
        bool begun = false;
        std::size_t left = 0;  // of the frame
        std::array<char, 10> head{};
        std::string tail;
    };
    /// What is said last, in the place of a ping.
    struct LastFrame {
        std::string bytes;  // as the library writes it, and as it leaves once it has begun
        bool begun = false;
        std::size_t left = 0;
    };
    void apply_last_frame(Completion<boost::asio::const_buffer>& completion);
    void drop_write(WriteCompletion completion);

    /// Returns how many bytes of the completion's buffers are not the library's.
    std::size_t apply_insertion(Completion<boost::asio::const_buffer>& completion);
    void write_tail(WriteCompletion completion, std::size_t written, std::size_t from);
    void fail_write(
        WriteCompletion completion, const boost::system::error_code& error, std::size_t bytes);

    void send_at_once();
    void start_read(ReadCompletion completion);
    void start_write(WriteCompletion completion);
    void start_teardown(ReadCompletion completion);

    std::unique_ptr<Transport> transport_;
    Peer peer_;
    std::uint64_t bytes_read_ = 0;
    std::uint64_t bytes_written_ = 0;
    Clock::time_point ended_at_ = Clock::time_point::max();
    Insertion insertion_;
    LastFrame last_;
    /// A write that failed while a read waits: what the peer said before it went is read first.
    WriteCompletion failed_write_;
    boost::system::error_code write_error_;
    std::size_t write_bytes_ = 0;
    bool reading_ = false;
};

}  // namespace cellkeep::http
