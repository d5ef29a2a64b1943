// SPDX-License-Identifier: Apache-2.0
//
// What the server answers in its kernel's place, mostly at once and also while the kernel is busy:
// kernel_info, interrupt, shutdown, usage and replay requests (messaging specification 5.5; the
// control channel). Asks for what has to be done through functions, so it knows no process, queue
// or session. io_context thread only.
#pragma once

#include "kernel-manager/kernel/reply_sink.hpp"
#include "kernel-manager/kernel/server_messages.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

/// Code that has shown an error ends within milliseconds, or goes on because it has caught it. A
/// kernel_info on shell waits this long for the end.
inline constexpr std::chrono::seconds kFailedEndPatience{2};

class ControlResponder {
 public:
    using Request = protocol::Message;
    using Sink = std::shared_ptr<ReplySink>;

    /// What it asks of its kernel. None is empty; any may end the session that owns the responder,
    /// which its caller keeps alive until the call returns.
    struct Kernel {
        /// The kernel's messages by the session name that it has now.
        std::function<const ServerMessages&()> messages;
        std::function<void(protocol::Message)> publish;
        /// A status was published; clients must see again that the kernel works, if it does.
        std::function<void()> repeat_busy;
        /// What the kernel said of itself; nullopt before it is ready.
        std::function<const std::optional<nlohmann::json>&()> info;
        /// Whether the code that runs has shown an error, less than kFailedEndPatience ago. If so,
        /// answer_waiting() is called when it has ended, or after that time.
        std::function<bool()> await_failed_end;
        /// It has no interpreter and will get none by itself.
        std::function<bool()> is_dead;
        std::function<Status()> interrupt;
        std::function<void()> restart;
        std::function<void()> end_session;
        /// The content of a usage_reply.
        std::function<nlohmann::json()> usage;
        /// Answers a replay request.
        std::function<void(const Request&, ReplySink&)> replay;
        /// Passes a debug_request to the kernel.
        std::function<void(const Request&, const Sink&)> debug;
        /// A message of a type that is not known; it gets no reply.
        std::function<void(const std::string& type)> log_unknown;
    };

    explicit ControlResponder(Kernel kernel) : kernel_(std::move(kernel)) {}
    ControlResponder(const ControlResponder&) = delete;
    ControlResponder& operator=(const ControlResponder&) = delete;
    ~ControlResponder() = default;

    /// Answers, or keeps what asks about a kernel that is not ready yet: at most
    /// limits::kShellQueueMax, the next is answered with an error. So it does with a kernel_info on
    /// shell while code is failing, and the next one beyond that number is answered at once.
    /// Executors go on at an `error`, ask for kernel_info, and take the next `idle` for the end of
    /// the code that they send then: the one of the code that failed has to come before.
    void submit(const Request& request, const Sink& origin);
    /// The kernel has become ready or is dead, or code that failed has ended: answers what was
    /// kept.
    void answer_waiting();
    /// The session ends: answers what was kept with an error.
    void refuse_waiting(const std::string& why);
    std::size_t waiting() const { return waiting_.size(); }

 private:
    void answer(const Request& request, const Sink& origin);
    void answer_by_type(const Request& request, ReplySink& origin) const;
    void answer_shutdown(const Request& request, ReplySink& origin) const;

    Kernel kernel_;
    std::vector<std::pair<Request, Sink>> waiting_;
};

}  // namespace cellkeep::session
