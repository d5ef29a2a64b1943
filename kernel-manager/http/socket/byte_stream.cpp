// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/socket/byte_stream.hpp"

#include "kernel-manager/http/socket/transport.hpp"
#include "protocol/limits.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace cellkeep::http {

namespace asio = boost::asio;

namespace {

/// A continuation frame with FIN and no payload.
constexpr std::array<char, 2> kEmptyLastFrame{'\x80', '\x00'};
/// The first byte of a frame with FIN.
constexpr char kPing = '\x89';
constexpr char kClose = '\x88';

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

ByteStream::ByteStream(Socket socket, Peer peer, std::shared_ptr<TlsContext> tls)
    : transport_(std::make_unique<Transport>(std::move(socket), std::move(tls))),
      peer_(std::move(peer)) {
    send_at_once();
}

void ByteStream::send_at_once() {
    // Ignored: without it answers are merely slower, and a Unix socket has none.
    boost::system::error_code ignored;
    (void)transport_->socket().set_option(asio::ip::tcp::no_delay(true), ignored);
}

ByteStream::~ByteStream() = default;

ByteStream::executor_type ByteStream::get_executor() {
    return transport_->socket().get_executor();
}

asio::awaitable<boost::system::error_code> ByteStream::open() {
    if (!transport_->has_tls()) {
        co_return boost::system::error_code();
    }
    auto [error] = co_await transport_->tls().async_handshake(transport_->handshake(), kAwait);
    co_return error;
}

asio::awaitable<boost::system::error_code> ByteStream::connect(Socket::endpoint_type endpoint) {
    auto [error] = co_await transport_->socket().async_connect(endpoint, kAwait);
    if (!error) {
        send_at_once();
    }
    co_return error;
}

std::string ByteStream::peer_certificate_sha256() {
    return http::peer_certificate_sha256(transport_->tls().native_handle());
}

asio::awaitable<void> ByteStream::end_tls() {
    if (transport_->has_tls() && transport_->socket().is_open()) {
        // Ignored: most peers just close.
        (void)co_await transport_->tls().async_shutdown(kAwait);
    }
}

void ByteStream::cancel() {
    boost::system::error_code ignored;  // Ignored: a socket that is gone has nothing to cancel.
    (void)transport_->socket().cancel(ignored);
}

void ByteStream::notice_lost_peer(std::chrono::milliseconds unacknowledged_max) {
    using KeepIdle = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
    using KeepInterval = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
    using KeepCount = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPCNT>;
    using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
    constexpr int kProbes = 3;
    const auto milliseconds = static_cast<int>(unacknowledged_max.count());
    const int seconds = std::max(1, milliseconds / 1000 / (kProbes + 1));
    auto& socket = transport_->socket();
    boost::system::error_code ignored;  // Ignored: a Unix socket has none of them.
    (void)socket.set_option(asio::socket_base::keep_alive(true), ignored);
    (void)socket.set_option(KeepIdle(seconds), ignored);
    (void)socket.set_option(KeepInterval(seconds), ignored);
    (void)socket.set_option(KeepCount(kProbes), ignored);
    (void)socket.set_option(UserTimeout(milliseconds), ignored);
}

void ByteStream::end_sending() {
    if (ended_at_ == Clock::time_point::max()) {
        ended_at_ = Clock::now();
    }
    if (!transport_->has_tls()) {
        boost::system::error_code ignored;  // Ignored: the peer may have gone first.
        (void)transport_->socket().shutdown(Socket::shutdown_send, ignored);
    }
}

bool ByteStream::has_tls() const {
    return transport_->has_tls();
}

UniqueFd ByteStream::release() {
    boost::system::error_code error;  // Ignored: then there is no socket, and the result is empty.
    return UniqueFd(transport_->socket().release(error));
}

bool ByteStream::has_input() const {
    int bytes = 0;
    return ::ioctl(transport_->socket().native_handle(), FIONREAD, &bytes) == 0 && bytes > 0;
}

void ByteStream::close() {
    boost::system::error_code ignored;  // Ignored: closing is all that is left to do.
    (void)transport_->socket().shutdown(Socket::shutdown_both, ignored);
    (void)transport_->socket().close(ignored);
    if (failed_write_ != nullptr && !reading_) {
        // No read waits: none will end the write that failed.
        asio::post(get_executor(), [this, failed = std::move(failed_write_)] {
            failed->complete(write_error_, write_bytes_);
        });
    }
}

void ByteStream::start_read(ReadCompletion completion) {
    const auto where = span_of(completion->buffers);
    reading_ = true;
    transport_->async_read_some(
        where,
        [this, kept = std::move(completion)](
            const boost::system::error_code& error, std::size_t bytes) {
            reading_ = false;
            bytes_read_ += bytes;
            if (error && failed_write_ != nullptr) {
                const WriteCompletion failed = std::move(failed_write_);
                failed->complete(write_error_, write_bytes_);
            }
            kept->complete(error, bytes);
        });
}

/// The WebSocket library reads no more once a write has failed, but the pongs that lie in the
/// receive queue prove what the peer has read: recv(2) gives them before it tells of a reset.
void ByteStream::fail_write(
    WriteCompletion completion, const boost::system::error_code& error, std::size_t bytes) {
    if (!reading_ || insertion_.payload == nullptr) {
        completion->complete(error, bytes);
        return;
    }
    write_error_ = error;
    write_bytes_ = bytes;
    failed_write_ = std::move(completion);
}

void ByteStream::insert_into_message(
    const void* payload, std::size_t payload_bytes, const std::string& inside) {
    insertion_ = Insertion();
    insertion_.payload = payload;
    insertion_.payload_bytes = payload_bytes;
    insertion_.tail = inside + std::string(kEmptyLastFrame.data(), kEmptyLastFrame.size());
}

void ByteStream::turn_ping_into_close(const std::string& payload) {
    last_ = {std::string{kPing, static_cast<char>(payload.size())} + payload};
}

void ByteStream::apply_last_frame(Completion<asio::const_buffer>& completion) {
    if (last_.bytes.empty() || last_.begun || completion.buffers.size() != 1) {
        return;
    }
    const asio::const_buffer& only = completion.buffers.front();
    if (std::string_view(static_cast<const char*>(only.data()), only.size()) != last_.bytes) {
        return;  // another control frame
    }
    last_.begun = true;
    last_.left = last_.bytes.size();
    last_.bytes.front() = kClose;
    completion.buffers.front() = asio::buffer(last_.bytes);
}

void ByteStream::drop_write(WriteCompletion completion) {
    const std::size_t bytes = asio::buffer_size(span_of(completion->buffers));
    asio::post(
        get_executor(), [bytes, dropped = std::move(completion)] { dropped->complete({}, bytes); });
}

std::size_t ByteStream::apply_insertion(Completion<asio::const_buffer>& completion) {
    auto& buffers = completion.buffers;
    if (insertion_.payload == nullptr) {
        return 0;
    }
    if (!insertion_.begun) {
        const bool this_one = buffers.size() > 1 && buffers[1].data() == insertion_.payload &&
                              buffers[0].size() <= insertion_.head.size();
        if (!this_one) {
            return 0;  // a control frame of the library's own
        }
        insertion_.begun = true;
        insertion_.left = buffers[0].size() + insertion_.payload_bytes;
        (void)asio::buffer_copy(asio::buffer(insertion_.head), buffers[0]);
        insertion_.head[0] = static_cast<char>(insertion_.head[0] & 0x7F);  // without FIN
        buffers[0] = asio::const_buffer(insertion_.head.data(), buffers[0].size());
    }
    std::size_t given = 0;
    for (const asio::const_buffer& buffer : buffers) {
        given += buffer.size();
    }
    if (given < insertion_.left) {
        return 0;  // the library writes long messages piece by piece
    }
    buffers.push_back(asio::buffer(insertion_.tail));
    return insertion_.tail.size();
}

std::size_t ByteStream::write_at_once(std::span<const asio::const_buffer> buffers) {
    if (transport_->has_tls()) {
        return 0;
    }
    std::array<iovec, kBuffersMax> pieces;  // not initialised: only `count` of them are
    std::size_t count = 0;
    std::size_t room = limits::kHttpWriteAtOnceBytesMax;
    for (const asio::const_buffer& buffer : buffers.first(std::min(buffers.size(), kBuffersMax))) {
        const std::size_t taken = std::min(buffer.size(), room);
        // sendmsg(2) only reads what iov_base points to; its type is historical.
        pieces[count++] = {const_cast<void*>(buffer.data()), taken};
        room -= taken;
        if (room == 0) {
            break;
        }
    }
    msghdr header{};
    header.msg_iov = pieces.data();
    header.msg_iovlen = count;
    const ssize_t sent =
        ::sendmsg(transport_->socket().native_handle(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    const std::size_t bytes = sent > 0 ? static_cast<std::size_t>(sent) : 0;
    bytes_written_ += bytes;
    return bytes;
}

void ByteStream::start_write(WriteCompletion completion) {
    if (last_.begun && last_.left == 0) {
        drop_write(std::move(completion));
        return;
    }
    apply_last_frame(*completion);
    const std::size_t added = apply_insertion(*completion);
    std::size_t given = 0;
    for (const asio::const_buffer& buffer : completion->buffers) {
        given += buffer.size();
    }
    given -= added;
    const auto what = span_of(completion->buffers);
    transport_->async_write_some(
        what,
        [this, given, added, kept = std::move(completion)](
            const boost::system::error_code& error, std::size_t bytes) mutable {
            bytes_written_ += bytes;
            const std::size_t own = std::min(bytes, given);
            if (insertion_.begun) {
                insertion_.left -= own;
            }
            last_.left -= std::min(last_.left, own);
            if (!error && added > 0 && own == given) {
                write_tail(std::move(kept), given, bytes - given);
                return;
            }
            if (error) {
                fail_write(std::move(kept), error, own);
                return;
            }
            kept->complete(error, own);
        });
}

/// The library learns of its bytes when ours have followed them.
void ByteStream::write_tail(WriteCompletion completion, std::size_t written, std::size_t from) {
    if (from == insertion_.tail.size()) {
        insertion_ = Insertion();
        completion->complete({}, written);
        return;
    }
    transport_->async_write_some(
        asio::buffer(insertion_.tail.data() + from, insertion_.tail.size() - from),
        [this, written, from, kept = std::move(completion)](
            const boost::system::error_code& error, std::size_t bytes) mutable {
            bytes_written_ += bytes;
            if (error) {
                fail_write(std::move(kept), error, written);
                return;
            }
            write_tail(std::move(kept), written, from + bytes);
        });
}

void ByteStream::start_teardown(ReadCompletion completion) {
    end_sending();
    struct Drain {
        ByteStream& stream;
        ReadCompletion done;
        std::array<char, 4096> thrown_away;
        static void read(std::unique_ptr<Drain> drain) {
            auto& socket = drain->stream.transport_->socket();
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
    std::unique_ptr<Drain> drain(new Drain{*this, std::move(completion), {}});
    if (!transport_->has_tls()) {
        Drain::read(std::move(drain));
        return;
    }
    transport_->tls().async_shutdown(
        [this, kept = std::move(drain)](const boost::system::error_code& /*error*/) mutable {
            // Ignored: a peer that was still sending did not expect the goodbye; it has it now.
            boost::system::error_code ignored;
            (void)transport_->socket().shutdown(Socket::shutdown_send, ignored);
            Drain::read(std::move(kept));
        });
}

}  // namespace cellkeep::http
