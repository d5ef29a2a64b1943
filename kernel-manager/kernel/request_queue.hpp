// SPDX-License-Identifier: Apache-2.0
//
// The shell requests of all clients of one session that wait for its kernel: first come, first
// served, bounded by count and bytes (limits::kShellQueueMax, kShellQueueBytesMax). Not
// thread-safe.
#pragma once

#include "kernel-manager/execution/execution.hpp"
#include "kernel-manager/execution/execution_recorder.hpp"
#include "kernel-manager/execution/running_execution.hpp"
#include "kernel-manager/kernel/reply_sink.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

/// An execution of the agent API while it waits and runs.
struct TrackedExecution {
    std::shared_ptr<Execution> execution;
    ExecutionRecorder recorder;
    std::optional<std::chrono::milliseconds> timeout;
    std::vector<InputFile> files;  // put in place when its turn has come
};

struct PendingRequest {
    protocol::Message message;
    std::shared_ptr<ReplySink> origin;            // null for a tracked execution
    std::shared_ptr<TrackedExecution> execution;  // null for a Jupyter client's request
    std::chrono::steady_clock::time_point queued_at;
};

/// An execution that waits, on its way from one program in the server's process to another.
struct PassedRequest {
    protocol::Message message;
    std::shared_ptr<Execution> execution;
    std::string stdin_text;
    std::optional<std::chrono::milliseconds> timeout;
    std::chrono::steady_clock::time_point queued_at;
};

class RequestQueue {
 public:
    /// shared_bytes: what several queues hold, and bytes_max is the bound of; it outlives this.
    /// Null: only this one counts.
    RequestQueue(
        std::size_t requests_max, std::size_t bytes_max, std::size_t* shared_bytes = nullptr);

    /// kLimitExceeded at a bound; the request is then handed back through `request` untouched.
    Status push(PendingRequest&& request);
    std::optional<PendingRequest> pop();
    /// Takes out every execute_request of one client (by header session) that was queued until
    /// then, in order: what stop_on_error aborts.
    std::vector<PendingRequest> take_executions_of(
        std::string_view client_session, std::chrono::steady_clock::time_point until);
    /// Takes out one execution; nothing if it does not wait here.
    std::optional<PendingRequest> take_execution(std::string_view execution_id);
    std::vector<PendingRequest> take_all();
    /// Each is an execution that can pass (Execution::can_pass), and no file comes with it.
    bool can_pass() const;
    /// Gives all of them away, in order, without answering their clients. Precondition: can_pass().
    std::vector<PassedRequest> pass_on();

    /// A request with this msg_id waits.
    bool holds(std::string_view msg_id) const;

    std::size_t size() const { return requests_.size(); }
    /// Of the messages and of the files that come with them.
    std::size_t bytes() const { return bytes_; }

 private:
    void count_out(std::size_t bytes);

    std::size_t requests_max_;
    std::size_t bytes_max_;
    std::deque<PendingRequest> requests_;
    std::size_t bytes_ = 0;
    std::size_t* shared_bytes_;
};

}  // namespace cellkeep::session
