// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/websocket/websocket_session.hpp"

#include "kernel-manager/http/websocket/control_payload.hpp"
#include "kernel-manager/http/websocket/message_arrival.hpp"
#include "kernel-manager/http/websocket/pieces.hpp"
#include "kernel-manager/http/websocket/stillness.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace cellkeep::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;
using Clock = std::chrono::steady_clock;

namespace {

constexpr const char* kNoMemory =
    "other messages take all the memory that there is for those that arrive";

class BeastSession final : public WebSocketSession,
                           public std::enable_shared_from_this<BeastSession> {
 public:
    BeastSession(
        std::shared_ptr<ByteStream> bytes,
        const ConnectionLimits& limits,
        ArrivalMemory::Claim memory);

    asio::awaitable<bool> handshake(WebSocketAnswer answer);
    asio::awaitable<Result<WebSocketMessage>> receive() override;
    asio::awaitable<Status> send(
        WebSocketKind kind, std::vector<asio::const_buffer> pieces) override;
    void watch_receipt(std::function<void(std::uint64_t)> on_receipt) override;
    void close(CloseCode code, std::string reason) override;
    void close_and_read_on(CloseCode code, std::string reason) override;
    void tick(Clock::time_point now) override;
    asio::awaitable<void> finish() override;

 private:
    /// Reads once. Returns how it failed.
    asio::awaitable<boost::system::error_code> read_more(MessageArrival& arrival);
    /// Waits for memory for that many bytes of the message. False: there is none in time.
    asio::awaitable<bool> claim(std::size_t bytes);
    /// Reads a message that is refused to its end, so that the peer, which is sending, gets to see
    /// the close frame.
    asio::awaitable<boost::system::error_code> skip_rest();
    /// What the peer may take to send that much more of a message.
    std::chrono::milliseconds time_for(std::size_t bytes) const;
    /// What waits fails with this text.
    void cut(std::string why);
    Error closed_error(const std::string& what) const;
    void ping(Clock::time_point now);
    void send_ping(const std::string& payload);
    /// The close frame behind which this reads on, as soon as nothing else is being written.
    void say_last();

    std::shared_ptr<ByteStream> bytes_;
    // Without permessage-deflate: it costs a core more than a kernel's outputs cost the network (30
    // MB/s of deflate against memory speed), keeps a window of up to 64 KB per client, and mixes
    // secrets with guest data in one compressed stream.
    websocket::stream<ByteStream&, /*deflateSupported=*/false> stream_;
    ConnectionLimits limits_;
    asio::steady_timer ended_;  // never expires; cancelled when the close is done
    std::string why_;           // of a cut
    std::function<void(std::uint64_t)> on_receipt_;
    std::uint64_t messages_ = 0;  // sent since watch_receipt()
    Clock::time_point next_ping_;
    Stillness silence_;            // while receive() waits: else signs of life lie unread
    Stillness stall_;              // while something is being written
    ArrivalMemory::Claim memory_;  // of the message that is arriving
    /// When the present message must have come, if all of it that has come is all that comes.
    Clock::time_point message_due_ = Clock::time_point::max();
    Clock::time_point close_deadline_ = Clock::time_point::max();
    std::string last_;  // the payload of a close frame that waits to be sent
    bool receiving_ = false;
    bool sending_ = false;
    bool pinging_ = false;
    bool leaving_ = false;  // by us, but we read on
    bool closing_ = false;  // by us
    bool closed_ = false;
    bool broken_ = false;  // the library has seen a failure or the peer's close frame
};

BeastSession::BeastSession(
    std::shared_ptr<ByteStream> bytes, const ConnectionLimits& limits, ArrivalMemory::Claim memory)
    : bytes_(std::move(bytes)),
      stream_(*bytes_),
      limits_(limits),
      ended_(bytes_->get_executor(), Clock::time_point::max()),
      next_ping_(Clock::now() + limits.websocket_ping_interval),
      silence_(Clock::now()),
      stall_(Clock::now()),
      memory_(std::move(memory)) {
    // Deadlines are tick()'s, for all sockets with one timer.
    stream_.set_option(websocket::stream_base::timeout{
        websocket::stream_base::none(), websocket::stream_base::none(), false});
    // One message, one frame: gathered from the caller's buffers into one writev(2).
    stream_.auto_fragment(false);
    stream_.read_message_max(limits.websocket_message_bytes_max);
}

asio::awaitable<bool> BeastSession::handshake(WebSocketAnswer answer) {
    // What the library looks at, in the form it wants; the request itself was inspected before.
    beast::http::request<beast::http::empty_body> request;
    request.version(11);
    request.method(beast::http::verb::get);
    request.target("/");
    request.set(beast::http::field::host, "localhost");
    request.set(beast::http::field::upgrade, "websocket");
    request.set(beast::http::field::connection, "upgrade");
    request.set(beast::http::field::sec_websocket_version, "13");
    request.set(beast::http::field::sec_websocket_key, answer.key);
    stream_.set_option(
        websocket::stream_base::decorator([&answer](beast::http::response_header<>& head) {
            head.set(beast::http::field::server, "cellkeep");
            if (!answer.protocol.empty()) {
                head.set(beast::http::field::sec_websocket_protocol, answer.protocol);
            }
            for (const auto& [name, value] : answer.headers.all()) {
                head.insert(name, value);
            }
        }));
    const auto self = shared_from_this();
    auto [error] = co_await stream_.async_accept(request, kAwait);
    broken_ = static_cast<bool>(error);
    co_return !error;
}

Error BeastSession::closed_error(const std::string& what) const {
    return {
        ErrorCode::kUnavailable, "The WebSocket is closed: " + (why_.empty() ? what : why_) + "."};
}

std::chrono::milliseconds BeastSession::time_for(std::size_t bytes) const {
    return std::chrono::milliseconds(
        static_cast<std::int64_t>(bytes * 1000 / limits_.body_bytes_per_second));
}

asio::awaitable<bool> BeastSession::claim(std::size_t bytes) {
    const auto begun = Clock::now();
    const auto due = std::exchange(message_due_, Clock::time_point::max());
    // The library refuses a longer message itself.
    const bool granted =
        co_await memory_.grow_to(std::min(bytes, limits_.websocket_message_bytes_max));
    if (due != Clock::time_point::max()) {
        message_due_ = due + (Clock::now() - begun);  // the peer could not send meanwhile
    }
    co_return granted;
}

asio::awaitable<boost::system::error_code> BeastSession::read_more(MessageArrival& arrival) {
    if (arrival.is_full()) {
        const auto hint = [this](std::size_t most) { return stream_.read_size_hint(most); };
        const std::size_t more = arrival.wanted(hint, limits_.websocket_message_bytes_max);
        const std::size_t next = arrival.bytes() + std::min(more, MessageArrival::kPieceBytesMax);
        if (arrival.bytes() + more > limits_.arrival_free_bytes_max && next > memory_.held()) {
            const bool granted = co_await claim(arrival.bytes() + more);
            if (!granted) {
                co_return asio::error::no_memory;
            }
        }
        arrival.make_room(more);
    }
    auto [failed, got] = co_await stream_.async_read_some(arrival.room(), kAwait);
    if (arrival.bytes() == 0) {
        message_due_ = Clock::now() + limits_.body_timeout;
    }
    arrival.add(got);
    message_due_ += time_for(got);
    co_return failed;
}

asio::awaitable<boost::system::error_code> BeastSession::skip_rest() {
    std::array<char, MessageArrival::kFirstBytes> piece;
    boost::system::error_code error;
    message_due_ = Clock::now() + limits_.body_timeout;
    while (!error && !stream_.is_message_done()) {
        auto [failed, got] = co_await stream_.async_read_some(asio::buffer(piece), kAwait);
        message_due_ += time_for(got);
        error = failed;
    }
    co_return error;
}

asio::awaitable<Result<WebSocketMessage>> BeastSession::receive() {
    CELLKEEP_CHECK(!receiving_);
    const auto self = shared_from_this();
    if (closing_ || broken_) {
        co_return closed_error("nothing more is read");
    }
    WebSocketMessage message;
    receiving_ = true;
    boost::system::error_code error;
    MessageArrival arrival;
    do {
        error = co_await read_more(arrival);
    } while (!error && !stream_.is_message_done());
    message.pieces = arrival.take();
    const bool refused = error == asio::error::no_memory;
    if (error) {
        memory_.release();
    } else if (memory_.held() > 0) {
        message.memory = std::make_shared<ArrivalMemory::Claim>(memory_.split());
    }
    if (refused) {
        message = {};
        error = co_await skip_rest();
    }
    message_due_ = Clock::time_point::max();
    receiving_ = false;
    if (refused && !error) {
        close(CloseCode::kTryAgainLater, kNoMemory);
        co_return closed_error(kNoMemory);
    }
    if (error) {
        broken_ = true;
        if (error == websocket::error::message_too_big) {
            co_return Error(
                ErrorCode::kLimitExceeded,
                "A message is longer than the " +
                    std::to_string(limits_.websocket_message_bytes_max) +
                    " bytes allowed; the WebSocket is closed.");
        }
        co_return closed_error(error.message());
    }
    if (closing_) {
        co_return closed_error("nothing more is read");
    }
    message.kind = stream_.got_text() ? WebSocketKind::kText : WebSocketKind::kBinary;
    co_return message;
}

asio::awaitable<Status> BeastSession::send(
    WebSocketKind kind, std::vector<asio::const_buffer> pieces) {
    CELLKEEP_CHECK(!sending_);
    const auto self = shared_from_this();
    if (closing_ || leaving_ || broken_) {
        co_return closed_error("nothing more is sent");
    }
    sending_ = true;
    if (on_receipt_ && !pieces.empty()) {
        bytes_->insert_into_message(
            pieces.front().data(), asio::buffer_size(pieces), make_proof(++messages_));
    }
    stream_.binary(kind == WebSocketKind::kBinary);
    const Pieces all{pieces.data(), pieces.data() + pieces.size()};
    auto [error, bytes] = co_await stream_.async_write(all, kAwait);
    sending_ = false;
    if (error) {
        broken_ = true;
        co_return closed_error(error.message());
    }
    say_last();
    co_return ok();
}

void BeastSession::watch_receipt(std::function<void(std::uint64_t)> on_receipt) {
    on_receipt_ = std::move(on_receipt);
    stream_.control_callback([this](websocket::frame_type kind, beast::string_view payload) {
        const auto number = kind == websocket::frame_type::pong
                                ? read_proof({payload.data(), payload.size()})
                                : std::nullopt;
        if (number.has_value()) {
            on_receipt_(std::min(*number, messages_));
        }
    });
}

void BeastSession::close(CloseCode code, std::string reason) {
    if (closing_) {
        return;
    }
    closing_ = true;
    if (broken_ && !receiving_ && !sending_) {
        // Nothing is left to agree upon.
        bytes_->close();
        closed_ = true;
        return;
    }
    close_deadline_ = Clock::now() + limits_.drain_timeout;
    const std::string cut = cut_reason(std::move(reason));
    stream_.async_close(
        websocket::close_reason(static_cast<websocket::close_code>(code), cut),
        [self = shared_from_this()](const boost::system::error_code& /*error*/) {
            // Ignored: whether the peer agreed or went away, it is over.
            self->closed_ = true;
            self->bytes_->close();
            self->ended_.cancel();
        });
}

void BeastSession::close_and_read_on(CloseCode code, std::string reason) {
    if (closing_ || leaving_ || broken_) {
        return;
    }
    leaving_ = true;
    close_deadline_ = Clock::now() + limits_.drain_timeout;
    last_ = make_close(static_cast<std::uint16_t>(code), std::move(reason));
    say_last();
}

void BeastSession::say_last() {
    if (last_.empty() || sending_ || pinging_ || closing_ || broken_) {
        return;
    }
    const std::string payload = std::exchange(last_, {});
    bytes_->turn_ping_into_close(payload);
    send_ping(payload);
}

asio::awaitable<void> BeastSession::finish() {
    const auto self = shared_from_this();
    close(CloseCode::kNormal, {});
    while (!closed_) {
        (void)co_await ended_.async_wait(kAwait);  // Ignored: being cancelled is the event.
    }
}

void BeastSession::cut(std::string why) {
    why_ = std::move(why);
    bytes_->close();
}

void BeastSession::ping(Clock::time_point now) {
    if (now < next_ping_ || pinging_ || leaving_ || closing_ || broken_) {
        return;
    }
    next_ping_ = now + limits_.websocket_ping_interval;
    send_ping({});
}

void BeastSession::send_ping(const std::string& payload) {
    pinging_ = true;
    stream_.async_ping(
        websocket::ping_data(payload.data(), payload.size()),
        [self = shared_from_this()](const boost::system::error_code& /*error*/) {
            // Ignored: receive() or send() meets the same failure.
            self->pinging_ = false;
            self->say_last();
        });
}

void BeastSession::tick(Clock::time_point now) {
    if (closed_) {
        return;
    }
    const auto stalled = stall_.look(now, sending_ || pinging_, bytes_->bytes_written());
    const auto silent = silence_.look(now, receiving_, bytes_->bytes_read());
    const auto ended_at = bytes_->ended_at();
    if (now >= close_deadline_ ||
        (ended_at != Clock::time_point::max() && now >= ended_at + limits_.drain_timeout)) {
        cut("the peer did not answer the close frame");
    } else if (stalled >= limits_.websocket_stall_max) {
        cut("the peer takes nothing");
    } else if (silent >= limits_.websocket_pong_timeout) {
        cut("the peer is silent");
    } else if (now >= message_due_) {
        cut("a message did not arrive in time");
    } else {
        ping(now);
    }
}

}  // namespace

asio::awaitable<std::shared_ptr<WebSocketSession>> WebSocketSession::accept(
    std::shared_ptr<ByteStream> stream,
    WebSocketAnswer answer,
    const ConnectionLimits& limits,
    ArrivalMemory::Claim memory) {
    auto session = std::make_shared<BeastSession>(std::move(stream), limits, std::move(memory));
    const bool accepted = co_await session->handshake(std::move(answer));
    if (!accepted) {
        co_return nullptr;
    }
    co_return session;
}

}  // namespace cellkeep::http
