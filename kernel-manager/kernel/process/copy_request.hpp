// SPDX-License-Identifier: Apache-2.0
//
// One question to an interpreter: for a copy of itself (protocol::kCheckpointRequest). Keeps who
// waits for the answer. io_context thread only.
#pragma once

#include "kernel-manager/checkpoint/copy_answer.hpp"
#include "kernel-manager/kernel/interpreter.hpp"
#include "kernel-manager/kernel/server_messages.hpp"
#include "protocol/limits.hpp"
#include "protocol/message.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace cellkeep::session {

class CopyRequest {
 public:
    using Answer = Result<checkpoint::CopyAnswer>;

    explicit CopyRequest(boost::asio::io_context& io) : io_(io), timer_(io) {}
    CopyRequest(const CopyRequest&) = delete;
    CopyRequest& operator=(const CopyRequest&) = delete;
    ~CopyRequest() = default;

    /// Asks, and waits for the answer (read_copy_answer). socket: the copy's, which the interpreter
    /// gets. kTimeout after the patience; what Interpreter::send() says. Preconditions:
    /// !is_pending(), and the caller keeps this alive.
    boost::asio::awaitable<Answer> ask(
        std::shared_ptr<Interpreter> interpreter,
        ServerMessages messages,
        UniqueFd socket,
        checkpoint::OnThreads on_threads,
        std::chrono::milliseconds patience = limits::kCopyPatience);
    /// It was asked, and has not answered.
    bool is_pending() const { return answered_ != nullptr; }
    /// Handles the answer. Returns false if the message is none.
    bool take(const protocol::Message& message);
    /// There will be no answer.
    void fail(const std::string& why);

 private:
    boost::asio::io_context& io_;
    std::string request_id_;
    std::shared_ptr<Completion<Answer>> answered_;
    boost::asio::steady_timer timer_;
};

}  // namespace cellkeep::session
