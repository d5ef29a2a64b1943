// SPDX-License-Identifier: Apache-2.0
//
// What is with one kernel, from its turn in the queue to its answer: has its files put in place,
// sends it, follows what the kernel says of it, cuts it short, and sees to it that it is answered
// exactly once. At most one request at a time. What it needs of the process, the output, the limits
// and the files is behind their own interfaces. io_context thread only.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/tool_calls.hpp"
#include "kernel-manager/kernel/execution_files.hpp"
#include "kernel-manager/kernel/interpreter.hpp"
#include "kernel-manager/kernel/kernel_output.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/kernel/process/process_supervisor.hpp"
#include "kernel-manager/kernel/request_queue.hpp"
#include "kernel-manager/kernel/run_watch.hpp"
#include "kernel-manager/kernel/running_request.hpp"
#include "kernel-manager/limits/limit_reason.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "protocol/message.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::session {

/// An execution whose code runs, on its way from one program in the server's process to another.
struct PassedRun {
    protocol::Message message;
    std::shared_ptr<Execution> execution;
    ExecutionRecorder::Passed recorder;
    std::optional<std::chrono::milliseconds> timeout;
    std::chrono::steady_clock::time_point queued_at;
    RunningRequest::Passed request;
    RunWatch::Passed watch;
    ArtifactTracker::Passed files;
};

class CurrentRun {
 public:
    /// The parts of the kernel that a run uses. They live longer.
    struct Parts {
        ProcessSupervisor& process;
        KernelOutput& output;
        RunWatch& watch;
        ExecutionFiles& files;
    };
    /// What it reports, and what it asks. None is empty; those of the first group may end the
    /// session.
    struct Owner {
        /// An execution's one answer, if its code left nothing to look for.
        std::function<void(TrackedExecution&, ExecutionResult)> complete;
        /// The code of this request failed, and clients saw its error then.
        std::function<void(
            const protocol::Message& request, std::chrono::steady_clock::time_point shown_at)>
            on_failed;
        /// The run of such a request is over, and answered or about to be.
        std::function<void(const std::string& request_type)> on_over;

        std::function<void(KernelEvent)> change;
        /// Thaws the sandbox, before anything is asked of what is inside.
        std::function<void()> wake;
        /// The run is at its end: what the sandbox has refused until now is counted where it
        /// matters (RunWatch::on_denied).
        std::function<void()> take_denials;
        /// Begins the high-water mark of the sandbox's memory anew. False: it is not the run's own.
        std::function<bool()> restart_memory_peak;
        /// Bytes; nullopt if unknown.
        std::function<std::optional<std::uint64_t>()> memory_peak;
        /// It ended with a limit. The execution's id is empty for a Jupyter client's request.
        std::function<void(const std::string& execution_id, const LimitHit&)> log_limit;
        /// The interpreter has died: set_restored(), if the next one goes on from a checkpoint.
        std::function<void(ExecutionResult&)> note_restored;
        /// The tools of a Jupyter client's request. May be empty: there are none.
        std::function<OperatorAccess()> operator_access = nullptr;
    };

    /// The limits stay where they are and may change.
    CurrentRun(Parts parts, const SessionLimits& limits, Owner owner, KeepAlive keep_alive);
    CurrentRun(const CurrentRun&) = delete;
    CurrentRun& operator=(const CurrentRun&) = delete;
    ~CurrentRun() = default;

    /// Precondition: nothing runs, and the process takes requests. The run may be over on return.
    void begin(PendingRequest request);

    // --- what the kernel says
    void on_iopub(protocol::Message message);
    void on_reply(const protocol::Message& reply);
    /// On the stdin channel: a question for input, or for a tool.
    void on_question(const protocol::Message& request);
    void on_text(OutputStream stream, std::string_view text);

    // --- what clients ask
    /// Passes it on if it answers the question that is open.
    void take_input_reply(const protocol::Message& reply);
    /// Nothing to do if nothing runs. Precondition: there is a process.
    Status interrupt();
    /// The statuses of another request were published; clients see again that the kernel works.
    void repeat_busy();

    // --- its limits and its end
    /// It has passed a limit (RunWatch::Owner).
    void cut(Cut limit);
    /// The kernel has exited: the run's times do not matter any more.
    void on_kernel_exit();
    /// The process is gone.
    void on_kernel_lost();
    /// Answers the request: its kernel has died. Returns it; nullopt if nothing runs.
    std::optional<protocol::Message> fail(const Death& death, const std::string& text);

    // --- its way to another program in the server's process
    /// RunningRequest::can_pass(), of what runs. Output that comes meanwhile waits in the link.
    bool can_pass() const { return current_.has_value() && current_->can_pass(); }
    /// About what it passes; 0 if nothing runs.
    std::size_t passed_bytes() const;
    /// Gives the run away without answering its client. Precondition: can_pass().
    PassedRun pass_on();
    /// In place of begin(). recorder: a new one, of this execution. After an error this object does
    /// not follow the run: its client gets no answer.
    Status go_on(PassedRun passed, ExecutionRecorder recorder);

    // --- how it is
    bool is_running() const { return current_.has_value(); }
    /// Its code has shown an error since then. So it has failed, and ends, if it has not caught it.
    bool has_shown_error_since(std::chrono::steady_clock::time_point then) const {
        return current_.has_value() && current_->has_shown_error_since(then);
    }
    /// The interpreter has the request, and has not said busy.
    bool awaits_busy() const {
        return current_.has_value() && current_->is_sent() && !current_->is_begun();
    }
    /// The request; null if nothing runs.
    const protocol::Message* message() const {
        return current_.has_value() ? &current_->message() : nullptr;
    }
    bool is_of(const std::shared_ptr<Execution>& execution) const {
        return current_.has_value() && current_->execution() &&
               current_->execution()->execution == execution;
    }
    /// How it is being cut short; kNone if nothing runs.
    Cut cut() const { return current_.has_value() ? current_->cut() : Cut::kNone; }
    /// The question of the code that no client has answered.
    std::optional<protocol::Message> question() const;

 private:
    bool is_current(std::uint64_t number) const;
    void on_input_request(const protocol::Message& request);
    void on_tool_request(const protocol::Message& request);
    ToolCalls& own_tools();
    void send();
    void on_files_placed(std::uint64_t number);
    void finish_unsent();
    void on_busy();
    bool is_of_flood() const;
    Status take_step(RunningRequest::CutStep step);
    void send_or_kill(const protocol::Message& message);
    void settle(const std::optional<Death>& death);
    ExecutionMetrics measure(const RunningRequest& run) const;
    RunningRequest take_current();
    void finish();
    void answer(const RunningRequest& run);
    void conclude(
        const RunningRequest& run, const ExecutionMetrics& metrics, ExecutionResult result);
    void publish_status(std::string_view state, const protocol::Message& parent);

    ProcessSupervisor& process_;
    KernelOutput& output_;
    RunWatch& watch_;
    ExecutionFiles& files_;
    const SessionLimits& limits_;
    const Owner owner_;
    const KeepAlive keep_alive_;

    std::optional<RunningRequest> current_;
    /// Of a Jupyter client's request that has asked for tools.
    std::optional<ToolCalls> own_tools_;
    std::uint64_t next_number_ = 1;
};

}  // namespace cellkeep::session
