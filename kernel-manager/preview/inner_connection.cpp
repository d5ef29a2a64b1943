// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/preview/inner_connection.hpp"

#include <poll.h>

#include <utility>

namespace cellkeep::preview {

namespace asio = boost::asio;
using egress::MessageReader;
using egress::SocketStream;

namespace {

constexpr int kFirstFinalStatus = 200;
constexpr int kLastFinalStatus = 599;
constexpr int kSwitching = 101;

}  // namespace

Result<std::shared_ptr<InnerConnection>> InnerConnection::create(
    const Executor& executor,
    UniqueFd socket,
    std::shared_ptr<session::Session> session,
    std::shared_ptr<void> place,
    PreviewPatience patience) {
    SocketStream::Socket connected(executor);
    boost::system::error_code error;
    (void)connected.assign(asio::ip::tcp::v4(), socket.get(), error);
    if (error) {
        return Error(ErrorCode::kSystem, "connect: " + error.message());
    }
    (void)socket.release();  // the socket's now
    std::shared_ptr<InnerConnection> made(new InnerConnection(
        executor, std::move(connected), std::move(session), std::move(place), patience));
    made->watchdog_.on_expiry([weak = std::weak_ptr(made)] {
        if (const auto late = weak.lock()) {
            late->close();
        }
    });
    return made;
}

InnerConnection::InnerConnection(
    const Executor& executor,
    SocketStream::Socket socket,
    std::shared_ptr<session::Session> session,
    std::shared_ptr<void> place,
    PreviewPatience patience)
    : session_(std::move(session)),
      place_(std::move(place)),
      connected_(session_->connect_client()),
      awake_(session_->hold_awake()),
      patience_(patience),
      stream_(std::move(socket)),
      watchdog_(executor) {}

Error InnerConnection::explain(const char* otherwise) const {
    return watchdog_.expired()
               ? Error(ErrorCode::kTimeout, "The server inside was silent for too long.")
               : Error(ErrorCode::kUnavailable, otherwise);
}

asio::awaitable<Status> InnerConnection::send(std::string_view bytes) {
    session_->wake();
    watchdog_.arm(patience_.idle);
    const boost::system::error_code failed = co_await stream_.write(bytes);
    watchdog_.disarm();
    if (failed) {
        co_return explain("The server inside takes no more.");
    }
    co_return ok();
}

bool InnerConnection::has_spoken() {
    if (!received_.empty()) {
        return true;
    }
    pollfd watched{stream_.handle(), POLLIN, 0};
    return ::poll(&watched, 1, 0) > 0;
}

asio::awaitable<Status> InnerConnection::read_some(std::chrono::milliseconds patience) {
    if (received_.empty()) {
        watchdog_.arm(patience);
        const egress::Stream::Got got = co_await stream_.read_some(buffer());
        watchdog_.disarm();
        const bool at_end = got.error == asio::error::eof;
        if (at_end && answer_->head_done()) {
            co_return answer_->end();
        }
        if (got.error) {
            co_return explain("The server inside has closed the connection without an answer.");
        }
        received_.assign(buffer_.data(), got.bytes);
    }
    co_return feed();
}

Status InnerConnection::feed() {
    BOOST_OUTCOME_TRY(const std::size_t used, answer_->feed(received_));
    received_.erase(0, used);
    return ok();
}

asio::awaitable<Status> InnerConnection::read_head(bool to_head_request) {
    const auto kind =
        to_head_request ? MessageReader::Kind::kResponseToHead : MessageReader::Kind::kResponse;
    for (int interim = 0; interim <= kPreviewInterimAnswersMax; ++interim) {
        answer_ = std::make_unique<MessageReader>(kind, kPreviewHeadBytesMax, kPreviewFieldsMax);
        std::chrono::steady_clock::time_point begun{};
        while (!answer_->head_done()) {
            // A head that comes byte by byte does not get the patience of a silence for each.
            auto left = patience_.answer;
            if (answer_->fed()) {
                const auto now = std::chrono::steady_clock::now();
                begun = begun == decltype(begun){} ? now : begun;
                left = std::chrono::duration_cast<std::chrono::milliseconds>(
                    begun + patience_.head - now);
            }
            Status read = co_await read_some(left);
            BOOST_OUTCOME_CO_TRY(std::move(read));
        }
        const int status = answer_->head().status;
        if (status == kSwitching || (status >= kFirstFinalStatus && status <= kLastFinalStatus)) {
            co_return ok();
        }
        if (status > kLastFinalStatus) {
            break;
        }
    }
    co_return Error(
        ErrorCode::kProtocol, "the server inside sends too many interim answers, or no status");
}

asio::awaitable<Result<std::string>> InnerConnection::read_body() {
    for (;;) {
        std::string piece = answer_->take_body();
        if (!piece.empty() || answer_->done()) {
            co_return piece;
        }
        Status read = co_await read_some(patience_.idle);
        BOOST_OUTCOME_CO_TRY(std::move(read));
    }
}

}  // namespace cellkeep::preview
