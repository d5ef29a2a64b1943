// SPDX-License-Identifier: Apache-2.0
//
// What the server and an interpreter say to each other for themselves: the first question, whose
// answer shows that the interpreter is ready and what it is, and the hand-out of a spare's. Keeps
// those who wait for either. Sends nothing itself. io_context thread only.
#pragma once

#include "kernel-manager/kernel/server_messages.hpp"
#include "protocol/message.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace cellkeep::session {

class KernelHandshake {
 public:
    explicit KernelHandshake(boost::asio::io_context& io) : io_(io), adoption_timer_(io) {}
    KernelHandshake(const KernelHandshake&) = delete;
    KernelHandshake& operator=(const KernelHandshake&) = delete;
    ~KernelHandshake() = default;

    // --- the first question
    /// A new process: nothing is known of it, and wait_ready() waits for it.
    void begin();
    /// The process was asked by another program in this process, and said this.
    void go_on(nlohmann::json info);
    /// The first question, to be sent to it.
    protocol::Message ask(const ServerMessages& messages);
    /// What it said of itself; nullopt until it has answered.
    const std::optional<nlohmann::json>& info() const { return info_; }
    /// Returns when the process of the last begin() is ready or will not be.
    boost::asio::awaitable<Status> wait_ready() const;
    /// Returns when a process is ready, however many fail before, or none will be.
    boost::asio::awaitable<Status> wait_restarted();
    /// This process will not be ready; another follows.
    void fail_process(const Error& why);
    /// It is ready, or it will not be and no other follows.
    void settle(const Status& status);

    // --- the hand-out of a spare
    /// The request, to be sent to it (kAdoptRequest).
    protocol::Message ask_adoption(const ServerMessages& messages, const nlohmann::json& content);
    /// After ask_adoption(): the interpreter's answer; kTimeout if there is none in time.
    boost::asio::awaitable<Status> wait_adopted(std::chrono::milliseconds timeout);
    void fail_adoption(const std::string& why);
    /// It has been asked, and has not answered.
    bool is_adopting() const { return adopted_ != nullptr; }

    // --- what it says
    enum class Taken {
        kNot,     // none of this
        kDone,    // it is dealt with
        kReady,   // the first answer: info() is there. Call settle() in turn
        kBroken,  // a first answer that makes no sense or is too long
    };
    Taken take(const protocol::Message& message);

 private:
    Taken take_info(const protocol::Message& reply);

    boost::asio::io_context& io_;
    std::string info_request_id_;
    std::optional<nlohmann::json> info_;
    std::shared_ptr<Completion<Status>> ready_;      // of the present process
    std::shared_ptr<Completion<Status>> restarted_;  // null: nothing waits for it
    std::string adopt_request_id_;
    std::shared_ptr<Completion<Status>> adopted_;
    boost::asio::steady_timer adoption_timer_;
};

}  // namespace cellkeep::session
