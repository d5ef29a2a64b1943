// SPDX-License-Identifier: Apache-2.0
//
// Passes debug_requests to a kernel at once, past its queue, and sees to it that each gets exactly
// one reply: the kernel's, or a failed response of the Debug Adapter Protocol. io_context thread
// only.
#pragma once

#include "kernel-manager/kernel/debug_requests.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/kernel/server_messages.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::session {

class DebugRouter {
 public:
    /// What it asks of its kernel. None is empty.
    struct Kernel {
        /// The kernel's messages by the session name that it has now.
        std::function<const ServerMessages&()> messages;
        std::function<void(protocol::Message)> publish;
        /// A status was published; clients must see again that the kernel works, if it does.
        std::function<void()> repeat_busy;
        /// An error, in a sentence for people, if there is no interpreter with a debugger.
        std::function<Status()> check_debugger;
        std::function<Status(const protocol::Message&)> send;
    };

    explicit DebugRouter(Kernel kernel) : kernel_(std::move(kernel)) {}
    DebugRouter(const DebugRouter&) = delete;
    DebugRouter& operator=(const DebugRouter&) = delete;
    ~DebugRouter() = default;

    /// A request of a client. What is sent the kernel itself encloses in busy and idle.
    void submit(const protocol::Message& request, const std::shared_ptr<ReplySink>& origin);
    /// A reply of the kernel's; an answer to nothing is dropped.
    void on_reply(const protocol::Message& reply) { requests_.answer(reply); }
    /// The kernel is gone: what it has not answered gets a failed response with this text.
    void fail_all(const std::string& text);
    /// Requests that the kernel has not answered.
    std::size_t size() const { return requests_.size(); }

 private:
    Status pass(const protocol::Message& request, const std::shared_ptr<ReplySink>& origin);
    void refuse(const protocol::Message& request, ReplySink& origin, const std::string& text) const;

    Kernel kernel_;
    DebugRequests requests_;
};

}  // namespace cellkeep::session
