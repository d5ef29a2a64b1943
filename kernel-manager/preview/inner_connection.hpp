// SPDX-License-Identifier: Apache-2.0
//
// One connection to a server inside a session, for one request or one WebSocket, with deadlines
// over everything that it waits for. What its peer says is only ever the guest's word: bounded, and
// read strictly (egress/message/message_reader.hpp). It keeps the session connected
// (Session::connect_client()) and one of the session's places (kPreviewConnectionsMax) while it
// lives. Until let_rest() the session is not frozen for being idle, either: its answer is awaited.
// io_context thread only.
#pragma once

#include "kernel-manager/egress/message/message_reader.hpp"
#include "kernel-manager/egress/stream.hpp"
#include "kernel-manager/egress/watchdog.hpp"
#include "kernel-manager/preview/limits.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::preview {

class InnerConnection : public std::enable_shared_from_this<InnerConnection> {
 public:
    using Executor = boost::asio::any_io_executor;

    /// socket: connected (Session::connect_port()). place: kept until the end.
    static Result<std::shared_ptr<InnerConnection>> create(
        const Executor& executor,
        UniqueFd socket,
        std::shared_ptr<session::Session> session,
        std::shared_ptr<void> place,
        PreviewPatience patience);
    InnerConnection(const InnerConnection&) = delete;
    InnerConnection& operator=(const InnerConnection&) = delete;
    ~InnerConnection() = default;

    /// kUnavailable: the peer takes no more; kTimeout: it takes nothing for patience.idle. Wakes a
    /// session that was frozen meanwhile.
    boost::asio::awaitable<Status> send(std::string_view bytes);
    /// The peer has said something, or has closed.
    bool has_spoken();

    /// Reads the head of the answer, interim ones (1xx but 101) skipped. kProtocol: it is no HTTP/1
    /// answer; kLimitExceeded: it is too large; kTimeout; kUnavailable: the peer has closed.
    boost::asio::awaitable<Status> read_head(bool to_head_request);
    /// After read_head().
    const egress::MessageReader& answer() const { return *answer_; }
    /// The next piece of the answer's body; "" at its end. As read_head().
    boost::asio::awaitable<Result<std::string>> read_body();

    // --- after an answer that switches protocols
    /// From now on the session may be frozen for being idle; send() and what the visitor says wake
    /// it.
    void let_rest() { awake_.reset(); }
    /// What came behind the head.
    std::string take_rest() { return std::exchange(received_, {}); }
    egress::Stream& stream() { return stream_; }
    egress::Watchdog& watchdog() { return watchdog_; }
    boost::asio::mutable_buffer buffer() { return boost::asio::buffer(buffer_); }
    const PreviewPatience& patience() const { return patience_; }
    session::Session& session() { return *session_; }

    /// At once; what waits ends.
    void close() { stream_.close(); }

 private:
    InnerConnection(
        const Executor& executor,
        egress::SocketStream::Socket socket,
        std::shared_ptr<session::Session> session,
        std::shared_ptr<void> place,
        PreviewPatience patience);
    boost::asio::awaitable<Status> read_some(std::chrono::milliseconds patience);
    Status feed();
    Error explain(const char* otherwise) const;

    std::shared_ptr<session::Session> session_;
    std::shared_ptr<void> place_;
    std::shared_ptr<void> connected_;
    std::shared_ptr<void> awake_;
    const PreviewPatience patience_;
    egress::SocketStream stream_;
    egress::Watchdog watchdog_;
    std::unique_ptr<egress::MessageReader> answer_;
    std::string received_;  // not taken by the answer yet
    std::array<char, kPreviewBufferBytes> buffer_{};
};

}  // namespace cellkeep::preview
