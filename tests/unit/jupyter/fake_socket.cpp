// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/jupyter/fake_socket.hpp"

#include "tests/unit/jupyter/journal_session.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <utility>

namespace cellkeep::jupyter::test {

namespace asio = boost::asio;

namespace {

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

Error gone() {
    return {ErrorCode::kUnavailable, "closed"};
}

}  // namespace

FakeSocket::FakeSocket(asio::io_context& io)
    : arrival_(io, asio::steady_timer::time_point::max()),
      room_(io, asio::steady_timer::time_point::max()) {}

void FakeSocket::say(http::WebSocketKind kind, std::string data) {
    http::WebSocketMessage message;
    message.kind = kind;
    message.pieces.push_back(data.substr(data.size() / 2));
    data.resize(data.size() / 2);
    message.pieces.insert(message.pieces.begin(), std::move(data));
    incoming_.push_back(std::move(message));
    arrival_.cancel();
}

void FakeSocket::say(const protocol::Message& message) {
    say(http::WebSocketKind::kBinary, std::string(message.frame()));
}

void FakeSocket::read_on() {
    paused_ = false;
    room_.cancel();
}

void FakeSocket::cut() {
    gone_ = true;
    arrival_.cancel();
    room_.cancel();
}

asio::awaitable<Result<http::WebSocketMessage>> FakeSocket::receive() {
    while (incoming_.empty() && !gone_) {
        (void)co_await arrival_.async_wait(kAwait);
    }
    if (gone_) {
        co_return gone();
    }
    http::WebSocketMessage message = std::move(incoming_.front());
    incoming_.pop_front();
    co_return message;
}

asio::awaitable<Status> FakeSocket::send(
    http::WebSocketKind kind, std::vector<asio::const_buffer> pieces) {
    while (paused_ && !gone_ && !asked_to_leave) {
        (void)co_await room_.async_wait(kAwait);
    }
    if (gone_ || asked_to_leave) {
        co_return gone();
    }
    std::string data;
    for (const asio::const_buffer& piece : pieces) {
        data.append(static_cast<const char*>(piece.data()), piece.size());
    }
    got.push_back({kind, std::move(data)});
    co_return ok();
}

void FakeSocket::watch_receipt(std::function<void(std::uint64_t)> on_receipt) {
    on_receipt_ = std::move(on_receipt);
}

void FakeSocket::close(http::CloseCode code, std::string why) {
    if (!closed.has_value()) {
        closed = code;
        reason = std::move(why);
        cut();
    }
}

void FakeSocket::close_and_read_on(http::CloseCode code, std::string why) {
    if (!closed.has_value() && !asked_to_leave.has_value()) {
        asked_to_leave = code;
        reason = std::move(why);
        room_.cancel();
    }
}

std::vector<protocol::Message> FakeSocket::messages() const {
    std::vector<protocol::Message> messages;
    for (const Got& one : got) {
        messages.push_back(protocol::Message::from_frame(one.data).value());
    }
    return messages;
}

std::vector<std::string> FakeSocket::texts() const {
    std::vector<std::string> texts;
    for (const protocol::Message& message : messages()) {
        texts.push_back(text_of(message));
    }
    return texts;
}

}  // namespace cellkeep::jupyter::test
