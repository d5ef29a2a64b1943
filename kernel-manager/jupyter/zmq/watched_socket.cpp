// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/zmq/watched_socket.hpp"

#include "protocol/limits.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace cellkeep::jupyter {

Result<std::shared_ptr<WatchedSocket>> WatchedSocket::create(
    boost::asio::io_context& io, ZmqSocket socket, SocketEvents events) {
    BOOST_OUTCOME_TRY(const int fd, socket.fd());
    const auto watched =
        std::make_shared<WatchedSocket>(Key(), io, std::move(socket), std::move(events));
    boost::system::error_code error;
    watched->descriptor_.assign(fd, error);
    if (error) {
        return Error(ErrorCode::kSystem, "watch a ZeroMQ socket: " + error.message());
    }
    // Posted, not waited for: something may have arrived between bind and here.
    watched->post_turn();
    return watched;
}

WatchedSocket::WatchedSocket(
    Key /*key*/, boost::asio::io_context& io, ZmqSocket socket, SocketEvents events)
    : socket_(std::move(socket)), events_(std::move(events)), descriptor_(io) {}

WatchedSocket::~WatchedSocket() {
    close();
}

void WatchedSocket::close() {
    if (std::exchange(closed_, true)) {
        return;
    }
    if (descriptor_.is_open()) {
        // Cancels the wait and gives the descriptor back to ZeroMQ, which closes it.
        (void)descriptor_.release();
    }
}

Result<SendOutcome> WatchedSocket::send(
    std::span<const std::string_view> frames, const std::shared_ptr<const void>& keep_alive) {
    Result<SendOutcome> outcome = socket_.send(frames, keep_alive);
    // Sending may have taken note of an arrival, and the descriptor will then stay silent about it.
    // Asking costs system calls, so after what was sent it is done once, in a turn of its own. What
    // could not be sent is tried again in turns, so there one must have a reason.
    const bool sent = outcome.has_value() && outcome.value() == SendOutcome::kSent;
    const Result<bool> readable = sent ? Result<bool>(true) : socket_.readable();
    if (readable.has_error() || readable.value()) {
        post_turn();
    }
    return outcome;
}

void WatchedSocket::resume() {
    if (--pauses_ == 0 && !closed_) {
        post_turn();
    }
}

void WatchedSocket::drain(std::size_t messages_max) {
    for (std::size_t i = 0; i < messages_max && !closed_ && receive_one(); ++i) {
        // Its owner has it.
    }
    if (!closed_ && pauses_ == 0) {
        post_turn();  // the descriptor may stay silent about what is left
    }
}

void WatchedSocket::wait() {
    if (waiting_ || closed_) {
        return;
    }
    waiting_ = true;
    descriptor_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [weak = weak_from_this()](const boost::system::error_code& error) {
            const std::shared_ptr<WatchedSocket> self = weak.lock();
            if (self == nullptr) {
                return;
            }
            self->waiting_ = false;
            if (!error) {
                self->take_turn();
            }
        });
}

void WatchedSocket::post_turn() {
    if (std::exchange(turn_posted_, true)) {
        return;
    }
    boost::asio::post(descriptor_.get_executor(), [weak = weak_from_this()] {
        if (const std::shared_ptr<WatchedSocket> self = weak.lock(); self != nullptr) {
            self->turn_posted_ = false;
            self->take_turn();
        }
    });
}

/// Receives one message if there is one; false when there is nothing more to do now.
bool WatchedSocket::receive_one() {
    const Result<bool> readable = socket_.readable();
    if (readable.has_error()) {
        close();
        events_.on_error(readable.error());
        return false;
    }
    if (!readable.value()) {
        return false;
    }
    Result<std::optional<ZmqMultipart>> received = socket_.receive();
    if (received.has_error()) {
        if (received.error().code() != ErrorCode::kLimitExceeded) {
            close();
        }
        events_.on_error(received.error());
    } else if (received.value().has_value()) {
        events_.on_message(std::move(*received.value()));
    }
    return !closed_;
}

void WatchedSocket::take_turn() {
    bool emptied = false;
    for (std::size_t i = 0; i < limits::kZmqTurnMessagesMax; ++i) {
        if (closed_) {
            return;
        }
        if (pauses_ > 0) {
            break;
        }
        emptied = !receive_one();
        if (emptied) {
            break;
        }
    }
    if (closed_) {
        return;
    }
    if (events_.on_turn) {
        events_.on_turn();
    }
    if (closed_ || pauses_ > 0) {
        return;  // resume() looks at what has come
    }
    if (!emptied) {
        post_turn();
    } else if (!turn_posted_) {
        wait();  // Nothing was there a moment ago, and nothing has been sent since.
    }
}

}  // namespace cellkeep::jupyter
