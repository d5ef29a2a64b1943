// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/request_dispatcher.hpp"

#include "protocol/limits.hpp"

#include <boost/asio/post.hpp>

#include <chrono>
#include <utility>

namespace cellkeep::session {

using protocol::Message;

namespace {

constexpr const char* kAborted = "ExecutionAborted";
constexpr const char* kAbortedText = "An earlier cell of this client failed.";

}  // namespace

RequestDispatcher::RequestDispatcher(
    boost::asio::io_context& io, std::size_t& queued_bytes, Kernel kernel, KeepAlive keep_alive)
    : io_(io),
      kernel_(std::move(kernel)),
      keep_alive_(std::move(keep_alive)),
      queue_(limits::kShellQueueMax, limits::kShellQueueBytesMax, &queued_bytes) {}

void RequestDispatcher::enclose(const Message& request, const std::function<void()>& answer) {
    kernel_.publish(kernel_.messages().status("busy", &request));
    answer();
    kernel_.publish(kernel_.messages().status("idle", &request));
}

void RequestDispatcher::refuse(
    Message request, std::shared_ptr<ReplySink> origin, std::string ename, std::string evalue) {
    boost::asio::post(
        io_,
        [this,
         owner = keep_alive_(),
         request = std::move(request),
         origin = std::move(origin),
         ename = std::move(ename),
         evalue = std::move(evalue)] {
            enclose(request, [&] {
                if (find_reply_type(request.header().msg_type).has_value()) {
                    origin->deliver(kernel_.messages().error_reply(request, ename, evalue));
                }
            });
        });
}

void RequestDispatcher::dispatch() {
    if (!kernel_.is_free()) {
        return;
    }
    if (auto next = queue_.pop()) {
        kernel_.begin(std::move(*next));
    }
}

void RequestDispatcher::fail_all(const Death& death, const std::string& text) {
    for (PendingRequest& request : queue_.take_all()) {
        enclose(request.message, [&] {
            if (request.execution) {
                kernel_.complete(
                    *request.execution, request.execution->recorder.finish_dead(death));
            } else if (find_reply_type(request.message.header().msg_type).has_value()) {
                // At once: a session that is being closed lets go of its clients right after this.
                request.origin->deliver(
                    kernel_.messages().error_reply(request.message, "KernelDied", text));
            }
        });
    }
}

void RequestDispatcher::abort_followers(
    const Message& failed, std::chrono::steady_clock::time_point shown_at) {
    const std::string_view stop =
        failed.outline().find(protocol::Member::kStopOnError, failed.content_json());
    if (!failed.outline().valid || (!stop.empty() && stop != "true")) {
        return;
    }
    // Only what the same client queued behind: another client's work does not depend on it.
    for (PendingRequest& request : queue_.take_executions_of(failed.header().session, shown_at)) {
        enclose(request.message, [&] {
            if (request.execution) {
                kernel_.complete(
                    *request.execution, request.execution->recorder.finish(Cut::kInterrupt));
            } else {
                const ServerMessages& messages = kernel_.messages();
                kernel_.publish(messages.error(request.message, kAborted, kAbortedText));
                request.origin->deliver(
                    messages.error_reply(request.message, kAborted, kAbortedText));
            }
        });
    }
}

bool RequestDispatcher::cancel(const Execution& execution) {
    auto waiting = queue_.take_execution(execution.id());
    if (!waiting.has_value()) {
        return false;
    }
    enclose(waiting->message, [&] {
        ExecutionResult result = waiting->execution->recorder.finish(Cut::kInterrupt);
        result.error->name = "Cancelled";
        result.error->message = "It was taken out of the queue before it ran.";
        result.metrics.queued = std::chrono::duration_cast<std::chrono::microseconds>(
            std::chrono::steady_clock::now() - waiting->queued_at);
        kernel_.complete(*waiting->execution, std::move(result));
    });
    return true;
}

}  // namespace cellkeep::session
