// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/channels/channels_connection.hpp"

#include "kernel-manager/http/message/text_reading.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "protocol/header.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace cellkeep::jupyter {

namespace asio = boost::asio;
using http::CloseCode;
using http::WebSocketKind;
using protocol::Message;

namespace {

constexpr auto kNever = asio::steady_timer::time_point::max();

/// What @jupyterlab/services accepts as a state of now: "restarting" is an event for it, which
/// makes it connect again.
std::string_view state_name(session::KernelState state) {
    return session::to_string(
        state == session::KernelState::kRestarting ? session::KernelState::kStarting : state);
}

}  // namespace

ChannelsConnection::ChannelsConnection(
    asio::io_context& io,
    std::shared_ptr<http::WebSocket> socket,
    std::shared_ptr<ChannelsSubscription> subscription,
    std::shared_ptr<session::Session> session,
    std::shared_ptr<PeerLog> log,
    ChannelsStyle style,
    WorkThread* work_thread)
    : socket_(std::move(socket)),
      subscription_(std::move(subscription)),
      session_(std::move(session)),
      log_(std::move(log)),
      style_(style),
      work_thread_(work_thread),
      wake_(io, kNever),
      room_(io, kNever),
      sent_all_(io, kNever),
      settle_(io, kNever) {}

asio::awaitable<void> ChannelsConnection::run() {
    const auto self = shared_from_this();
    const std::weak_ptr<ChannelsConnection> weak = self;
    attachment_ = subscription_->attach([weak] {
        if (const auto connection = weak.lock()) {
            connection->wake_.cancel();
        }
    });
    socket_->watch_receipt([weak](std::uint64_t messages) {
        if (const auto connection = weak.lock()) {
            connection->subscription_->acknowledge(connection->attachment_, messages);
            if (connection->subscription_->settled()) {
                connection->settle_.cancel();
            }
        }
    });
    welcome();
    asio::co_spawn(wake_.get_executor(), send_all(), asio::detached);
    while (!stopped_) {
        co_await wait_for_room();
        if (parting_ && subscription_->full()) {
            break;  // it gets no answers here, and asks for more and more
        }
        Result<http::WebSocketMessage> received = co_await socket_->receive();
        if (received.has_error()) {
            if (received.error().code() != ErrorCode::kUnavailable) {
                log_->record(PeerEvent::kRejected, received.error().message());
            }
            break;
        }
        if (!stopped_) {
            if (parting_) {
                on_asked_();
            }
            taking_ = true;
            co_await take(std::move(received).value());
            taking_ = false;
        }
    }
    stopped_ = true;
    subscription_->detach(attachment_);
    wake_.cancel();
    settle_.cancel();
    while (!sender_done_) {
        (void)co_await sent_all_.async_wait(kAwait);  // Ignored: being cancelled is the event.
    }
}

/// A client that asks and does not read its answers is not listened to.
asio::awaitable<void> ChannelsConnection::wait_for_room() {
    while (!stopped_ && !sender_done_ && subscription_->full()) {
        (void)co_await room_.async_wait(kAwait);  // Ignored: being cancelled is the event.
    }
}

asio::awaitable<void> ChannelsConnection::send_all() {
    const auto self = shared_from_this();
    while (!stopped_ && !retiring_ && !parting_) {
        std::optional<Message> message = subscription_->next(attachment_);
        if (message.has_value()) {
            const Status sent = co_await send_one(std::move(*message));
            if (sent.has_error()) {
                break;  // receive() fails too, and ends this
            }
            if (!subscription_->full()) {
                room_.cancel();
            }
        } else if (finishing_) {
            socket_->close(code_, reason_);
            break;
        } else {
            (void)co_await wake_.async_wait(kAwait);  // Ignored: being cancelled is the event.
        }
    }
    sender_done_ = true;
    room_.cancel();
    sent_all_.cancel();
}

asio::awaitable<Status> ChannelsConnection::send_one(Message message) {
    const OutgoingFrame frame(style_.framing, std::move(message), style_.buffers);
    if (frame.mended()) {
        log_->record(PeerEvent::kRejected, "the kernel sent content or metadata that is not JSON");
    }
    if (frame.reduced()) {
        log_->record(
            PeerEvent::kUndeliverable, "buffers for a gateway that breaks on binary messages");
    }
    std::vector<asio::const_buffer> pieces;
    for (const std::string_view piece : frame.pieces()) {
        pieces.emplace_back(piece.data(), piece.size());
    }
    const WebSocketKind kind = frame.binary() ? WebSocketKind::kBinary : WebSocketKind::kText;
    const Status sent = co_await socket_->send(kind, std::move(pieces));
    co_return sent;
}

asio::awaitable<void> ChannelsConnection::take(http::WebSocketMessage received) {
    using Decoded = Result<DecodedRequest>;
    const bool binary = received.kind == WebSocketKind::kBinary;
    http::TextReader<Decoded> decode = [framing = style_.framing, binary](std::string data) {
        Decoded decoded = decode_request(framing, binary, std::move(data));
        if (decoded.has_value()) {
            (void)decoded.value().message.outline();  // scanned now, not on the event loop
        }
        return decoded;
    };
    Decoded decoded = co_await http::read_text<Decoded>(
        work_thread_, std::move(received.pieces), std::move(decode));
    if (decoded.has_error()) {
        const std::string& why = decoded.error().message();
        log_->record(PeerEvent::kRejected, why);
        if (decoded.error().code() == ErrorCode::kProtocol) {
            const bool text_in_v1 = style_.framing == Framing::kV1 && !binary;
            socket_->close(
                text_in_v1 ? CloseCode::kUnsupportedData : CloseCode::kProtocolError, why);
        }
        co_return;
    }
    if (!decoded.value().problem.empty()) {
        refuse(decoded.value());
        co_return;
    }
    session_->submit(std::move(decoded.value().message), subscription_);
}

/// An error reply between busy and idle, because clients wait for idle. Only this client gets it.
void ChannelsConnection::refuse(const DecodedRequest& request) {
    log_->record(PeerEvent::kRejected, request.problem);
    const session::ServerMessages messages(sender());
    if (session::find_reply_type(request.message.header().msg_type).has_value()) {
        subscription_->notify(messages.status("busy", &request.message));
        subscription_->deliver(
            messages.error_reply(request.message, "MessageRefused", request.problem));
        subscription_->notify(messages.status("idle", &request.message));
    }
}

/// The state of now: a client that connects has missed the status messages so far.
void ChannelsConnection::welcome() {
    subscription_->notify(
        session::ServerMessages(sender()).status(state_name(session_->state()), nullptr));
}

/// As the kernel's own messages say: clients take another sender for another kernel.
std::string ChannelsConnection::sender() const {
    const session::OutputJournal& journal = session_->journal();
    const std::uint64_t last = journal.last_sequence();
    const auto newest = journal.since(last == 0 ? 0 : last - 1);
    return newest.entries.empty() ? "cellkeep-" + session_->id()
                                  : newest.entries.back().message.header().session;
}

asio::awaitable<void> ChannelsConnection::retire(std::chrono::milliseconds patience) {
    const auto self = shared_from_this();
    if (!std::exchange(retiring_, true)) {
        settle_.expires_after(patience);
    }
    wake_.cancel();
    if (!stopped_ && !subscription_->settled()) {
        (void)co_await settle_.async_wait(kAwait);  // Ignored: over either way.
    }
    stop(CloseCode::kNormal, "The same client has connected once more.");
}

void ChannelsConnection::part(std::function<void()> on_asked) {
    if (stopped_ || std::exchange(parting_, true)) {
        return;
    }
    on_asked_ = std::move(on_asked);
    wake_.cancel();
    socket_->close_and_read_on(
        CloseCode::kServiceRestart, "The server goes on as another program: connect again.");
}

bool ChannelsConnection::is_at_rest(std::size_t unread_bytes_max) const {
    return !taking_ && subscription_->unread_at_most(unread_bytes_max);
}

void ChannelsConnection::stop(CloseCode code, std::string reason) {
    stopped_ = true;
    subscription_->detach(attachment_);
    wake_.cancel();
    room_.cancel();
    socket_->close(code, std::move(reason));
}

void ChannelsConnection::finish(CloseCode code, std::string reason) {
    subscription_->notify(session::ServerMessages(sender()).status("dead", nullptr));
    finishing_ = true;
    code_ = code;
    reason_ = std::move(reason);
    wake_.cancel();
}

}  // namespace cellkeep::jupyter
