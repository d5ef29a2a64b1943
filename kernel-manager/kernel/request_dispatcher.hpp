// SPDX-License-Identifier: Apache-2.0
//
// What waits for one kernel: hands one request after another to it when it is free, and answers
// those that will not come to it, each exactly once: refused, aborted, cancelled, or waiting for a
// kernel that has died. Owns the queue. io_context thread only.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/kernel/request_queue.hpp"
#include "kernel-manager/kernel/server_messages.hpp"
#include "protocol/message.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace cellkeep::session {

class RequestDispatcher {
 public:
    /// What it asks of its kernel. None is empty; those of the first group may end the session.
    struct Kernel {
        /// The run of a request begins; it may be over on return.
        std::function<void(PendingRequest)> begin;
        std::function<void(protocol::Message)> publish;
        /// An execution's one answer.
        std::function<void(TrackedExecution&, ExecutionResult)> complete;

        /// It takes a request now.
        std::function<bool()> is_free;
        /// The kernel's messages by the session name that it has now.
        std::function<const ServerMessages&()> messages;
    };

    /// queued_bytes: of all queues of the session; it lives longer.
    RequestDispatcher(
        boost::asio::io_context& io,
        std::size_t& queued_bytes,
        Kernel kernel,
        KeepAlive keep_alive);
    RequestDispatcher(const RequestDispatcher&) = delete;
    RequestDispatcher& operator=(const RequestDispatcher&) = delete;
    ~RequestDispatcher() = default;

    /// kLimitExceeded at the queue's bounds (limits::kShellQueueMax, kShellQueueBytesMax): the
    /// request is then untouched. Call dispatch() afterwards.
    Status push(PendingRequest&& request) { return queue_.push(std::move(request)); }
    /// Answers a client's request with an error, a little later: the client may be inside a call
    /// that submits it. Keeps the session until then. Not while it is being destroyed.
    void refuse(
        protocol::Message request,
        std::shared_ptr<ReplySink> origin,
        std::string ename,
        std::string evalue);
    /// Begins the next request if the kernel is free and one waits.
    void dispatch();

    /// The kernel has died: answers everything that waits.
    void fail_all(const Death& death, const std::string& text);
    /// The code of this request failed. Unless it says that the client's other requests go on
    /// (stop_on_error), answers those that the same client queued behind it until its error was
    /// shown. What the client sent later it sent in view of the error: that runs.
    void abort_followers(
        const protocol::Message& failed, std::chrono::steady_clock::time_point shown_at);
    /// Takes one execution out of the queue and answers it. Returns false if it does not wait here.
    bool cancel(const Execution& execution);

    /// RequestQueue's, for another program in this process.
    bool can_pass() const { return queue_.can_pass(); }
    std::vector<PassedRequest> pass_on() { return queue_.pass_on(); }
    std::size_t bytes() const { return queue_.bytes(); }

    std::size_t size() const { return queue_.size(); }
    /// A request with this msg_id waits.
    bool holds(std::string_view msg_id) const { return queue_.holds(msg_id); }

 private:
    /// Publishes busy and idle around an answer: clients wait for the idle of their request.
    void enclose(const protocol::Message& request, const std::function<void()>& answer);

    boost::asio::io_context& io_;
    const Kernel kernel_;
    const KeepAlive keep_alive_;
    RequestQueue queue_;
};

}  // namespace cellkeep::session
