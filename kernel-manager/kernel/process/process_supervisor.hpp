// SPDX-License-Identifier: Apache-2.0
//
// The process of one language's kernel over all its lives: starts it, waits until it has answered,
// learns of its end, has swept what it left running, and starts the next one or leaves the kernel
// dead. Owns the present process and its timers. Knows no request: who runs what, and who has to be
// answered when a process is lost, its listener knows. io_context thread only.
#pragma once

#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/execution_recorder.hpp"
#include "kernel-manager/kernel/interpreter.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/kernel/process/claimed_end.hpp"
#include "kernel-manager/kernel/process/copy_request.hpp"
#include "kernel-manager/kernel/process/kernel_handshake.hpp"
#include "kernel-manager/kernel/process/process_end.hpp"
#include "kernel-manager/kernel/server_messages.hpp"
#include "kernel-manager/limits/death_notice.hpp"
#include "kernel-manager/limits/limits.hpp"
#include "protocol/message.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::session {

/// How long the cell of an interpreter that is ending waits with its answer, because what comes
/// last belongs to it, and the next interpreter is then mostly there.
inline constexpr std::chrono::milliseconds kTellPatience{250};
/// How long a killed interpreter, or what one has left running, may take to go.
inline constexpr std::chrono::seconds kEndPatience{30};
/// How long a process that is paused is not asked again whether its run is over.
inline constexpr std::chrono::seconds kPausedClaimPatience{10};

/// A process on its way from one program in the server's process to another, and what is known of
/// it.
struct PassedProcess {
    PassedInterpreter interpreter;  // without descriptors if there is none
    std::optional<Death> death;     // there is none, and none follows by itself
    std::string session;            // ServerMessages
    nlohmann::json info;            // null: nothing was said
    std::uint64_t restarts = 0;
    std::deque<std::chrono::steady_clock::time_point> deaths;  // that count
    std::uint64_t oom_kills = 0;                               // seen
    /// Of the last run, if its end has not been proved (ClaimedEnd).
    std::optional<std::chrono::steady_clock::time_point> claimed_end;
};

class ProcessSupervisor {
 public:
    /// What it asks of the sandbox. None is empty.
    struct Sandbox {
        /// Begins the start of a process of the kernel's language, and waits for nothing. An error,
        /// here or by on_start_failed(), leaves the kernel dead.
        std::function<Result<std::unique_ptr<Interpreter>>(Interpreter::Events)> start;
        /// Kills what the process, which has ended, left running; on_swept() is called when that is
        /// over.
        std::function<Status()> begin_sweep;
        /// Returns whether nothing can start at present: then launch_or_die() is called later.
        std::function<bool()> postpones_launch;
        /// Whether the next process goes on from a checkpoint, and not from nothing.
        std::function<bool()> goes_on;
        /// Thaws what is inside, before anything is asked of it.
        std::function<void()> wake;
        /// The sandbox's count of OOM kills.
        std::function<std::uint64_t()> oom_kills;
        /// A client has paused the session. Then only a request of a client wakes it.
        std::function<bool()> is_paused = [] { return false; };
        /// Stops the process with all that it has started, and kills them. Returns false if that
        /// cannot be done; otherwise the call says later whether it was: then the next process may
        /// start, although Linux has not taken them apart yet. Until the call nothing may start.
        /// May be empty.
        std::function<bool(std::function<void(bool)>)> halt = nullptr;
    };

    /// A process is gone.
    struct Loss {
        Death death;
        std::string text;  // for people: what happened, and what is left
        bool restarts = false;
        bool informed = false;  // the client of the cell that it ran has its answer already
    };

    /// What it reports. None is empty; any may end the session.
    struct Listener {
        std::function<void(KernelEvent)> change;
        /// A status of this kernel.
        std::function<void(protocol::Message)> publish;
        /// What the process says, but for the answers to the supervisor's own questions.
        std::function<void(protocol::Message)> on_message;
        /// Text of a process that is ready.
        std::function<void(OutputStream, std::string_view)> on_text;
        /// As Interpreter::Events::awaits_busy.
        std::function<bool()> awaits_busy;
        /// There is a process, or it is being started; it is not ready yet.
        std::function<void()> on_started;
        std::function<void()> on_ready;
        /// The request that is with the process; null if there is none.
        std::function<const protocol::Message*()> running;
        /// Answers that request: its process has ended, and what it left is still there.
        std::function<void(const Death&, const std::string& text)> fail_running;
        /// Answers every request that waits.
        std::function<void(const Death&, const std::string& text)> fail_waiting;
        /// Answers what has to be answered now. Returns the request that was with the process, if
        /// one was.
        std::function<std::optional<protocol::Message>(const Loss&)> on_lost;
        /// There is no process, and none follows by itself.
        std::function<void(const Death&)> on_left_dead;
    };

    struct Settings {
        /// What the server's messages about this kernel are called: a session name in their
        /// headers, with a number for each process.
        std::string name;
        /// From the start of a process to its first answer.
        std::chrono::milliseconds start_timeout{0};
        /// Nothing else has run in its sandbox before its first process.
        bool first_inside = false;
        /// Made in advance: not restarted until it is handed out.
        bool spare = false;

        // of tests
        std::chrono::milliseconds tell_patience = kTellPatience;
        std::chrono::milliseconds end_patience = kEndPatience;
        std::chrono::milliseconds paused_claim_patience = kPausedClaimPatience;
    };

    /// The limits stay where they are and may change.
    ProcessSupervisor(
        boost::asio::io_context& io,
        Settings settings,
        const SessionLimits& limits,
        Sandbox sandbox,
        Listener listener,
        KeepAlive keep_alive);
    ProcessSupervisor(const ProcessSupervisor&) = delete;
    ProcessSupervisor& operator=(const ProcessSupervisor&) = delete;
    ~ProcessSupervisor() = default;

    // --- its start
    /// Begins it: an error means that it was not even begun. wait_ready() returns the rest.
    Status launch();
    /// The same if no caller waits for the result: a failure leaves the kernel dead, and its
    /// requests are answered.
    void launch_or_die() { launch_under(nullptr); }
    /// Until the launched process has answered.
    boost::asio::awaitable<Status> wait_ready();
    /// The process of a spare goes to a client. Unless the content is null, the process is asked to
    /// take over what the content says (kAdoptRequest), and this waits for its answer: kTimeout
    /// after the start timeout.
    boost::asio::awaitable<Status> adopt(nlohmann::json content);

    // --- its way to another program in the server's process
    /// The process has answered, is not ending, and nothing is half said or asked. Or there is none
    /// and none follows by itself.
    bool is_at_rest() const;
    /// The process and what is known of it: there is none here any more. Precondition:
    /// is_at_rest().
    PassedProcess pass_on();
    /// In place of launch(): Sandbox::start is not called, connect is, with the events of this.
    /// Neither is, if there is no process.
    Status go_on(
        PassedProcess passed,
        const std::function<
            Result<std::unique_ptr<Interpreter>>(PassedInterpreter, Interpreter::Events)>& connect);

    // --- its end
    /// A client asks for a fresh process. What waits is answered; launch follows by itself.
    void begin_restart();
    /// begin_restart(), and until the fresh process has answered. kCancelled after close().
    boost::asio::awaitable<Status> restart();
    /// As restart(), with a next process that does not wait for the end of this one, but only for
    /// its last instruction, where that can be had (Sandbox::halt).
    boost::asio::awaitable<Status> replace();
    /// Sends SIGKILL unless the process has ended; the first reason stays.
    void kill(const Death& why);
    /// Returns whether this is the present process, and its exit is news.
    bool is_of(sandbox::WorkerId worker) const;
    /// pid 1 reports the exit of the present process. cut: how the request that it ran was being
    /// cut short.
    void on_exit(const sandbox::WorkerExit& exit, Cut cut);
    /// Nothing is left of what was to be killed.
    void on_swept();
    /// pid 1 is gone, and everything with it.
    void on_sandbox_died();
    /// The session has ended: nothing follows the present process any more.
    void close() { closed_ = true; }
    /// After close(): the process is given up, and callers that wait for one get an error.
    void end(const Death& reason);

    // --- what the process can be asked
    /// It takes a request now: it is ready, it is not ending, the session has not ended.
    bool takes_requests() const;
    /// Precondition: has_process().
    Status send(const protocol::Message& message) { return process_->send(message); }
    /// SIGINT, unless it has ended. Precondition: has_process().
    Status interrupt();
    /// Asks the process for a copy of itself: CopyRequest::ask(). Precondition: takes_requests()
    /// and !is_copying().
    boost::asio::awaitable<CopyRequest::Answer> copy(
        UniqueFd socket, checkpoint::OnThreads on_threads) {
        return copy_.ask(process_, messages_, std::move(socket), on_threads);
    }
    /// It was asked, and has not answered.
    bool is_copying() const { return copy_.is_pending(); }
    /// Interpreter::drain_pipes(); true also if there is no process, and so no look.
    bool drain_pipes(int also) {
        const auto process = process_;
        return !process || process->drain_pipes(also);
    }
    /// Not while what is left of an ended process is taken.
    void pause_reading() {
        if (process_ && !draining_) {
            process_->pause_reading();
        }
    }
    void resume_reading() {
        if (process_) {
            process_->resume_reading();
        }
    }
    /// Handles what the supervisor itself asked the process for. Returns false if the message is
    /// none of that.
    bool take(const protocol::Message& message);
    void see_oom_kills(std::uint64_t count) { end_.see_oom_kills(count); }
    /// The process says that a run is over whose deadline this is. Its own code can have said so:
    /// unless it begins a request by then or answers a question, it is interrupted and killed
    /// (ClaimedEnd).
    void watch_claimed_end(std::chrono::steady_clock::time_point deadline);
    /// The process has begun a request.
    void settle_claimed_end() { claimed_end_.settle(); }

    // --- how it is
    /// There is none, and none follows by itself.
    bool is_left_dead() const { return dead_ && !process_ && !closed_; }
    /// There is a process, or one is being started, or what one has left running is being killed.
    bool has_process() const { return process_ != nullptr; }
    /// Its exit was reported; what it left running may live.
    bool has_ended() const { return end_.is_ended(); }
    /// Its exit was reported, or it is being killed.
    bool is_near_end() const { return end_.is_near(); }
    /// It has been decided that none follows the process that ended.
    bool will_stay_dead() const { return end_.restarts() == false; }
    bool is_killed_for(Death::Kind kind) const { return end_.is_killed_for(kind); }
    /// The last output of an ended process is being taken.
    bool is_draining() const { return draining_; }
    /// An adoption waits for its answer.
    bool is_adopting() const { return handshake_.is_adopting(); }
    bool is_spare() const { return settings_.spare; }
    /// What the present process said of itself; nullopt until it is ready.
    const std::optional<nlohmann::json>& info() const { return handshake_.info(); }
    /// Of the last process, while there is none.
    const std::optional<Death>& death() const { return death_; }
    std::uint64_t restarts() const { return restart_policy_.restarts(); }
    /// The server's messages by the session name of the present process: clients tell a restart by
    /// it.
    const ServerMessages& messages() const { return messages_; }
    std::string describe_end(const Death& death, Aftermath aftermath) const {
        return describe(death, limits_, aftermath);
    }

 private:
    /// The answer to a restart that begins after close(), which would never be answered.
    static Error session_ended() {
        return {ErrorCode::kCancelled, "restart: the session has ended"};
    }
    bool is_live_at_rest() const;
    Interpreter::Events events();
    void launch_under(const protocol::Message* parent);
    void on_ready(const protocol::Message& kernel_info);
    void begin_replacement();
    void on_halted(std::uint64_t life, bool halted);
    void send_kill();
    void sweep();
    void prove_end(ClaimedEnd::Step step);
    void on_text(OutputStream stream, std::string_view text);
    void await_end();
    void tell_end();
    void give_up_on_end();
    void drain();
    void lose(const Death& death);
    void change(KernelEvent event);
    void restart_process(const protocol::Message* parent, const Death& death);
    void on_start_failed(const Error& error);
    void fail_launch(const Status& launched);
    void stay_dead(const Status& status, const protocol::Message* parent, const Death& death);
    bool may_restart(const Death& death);
    Aftermath after_restart() const {
        return sandbox_.goes_on() ? Aftermath::kRestored : Aftermath::kRestarted;
    }

    Settings settings_;
    const SessionLimits& limits_;
    const Sandbox sandbox_;
    const Listener listener_;
    const KeepAlive keep_alive_;

    std::shared_ptr<Interpreter> process_;  // shared with a call into it that is under way
    std::uint64_t life_ = 0;                // counts processes: a late event is of an earlier one
    ProcessEnd end_;                        // of the present process
    RestartPolicy restart_policy_;
    std::optional<Death> death_;
    ServerMessages messages_;
    std::optional<protocol::Message> launch_parent_;  // of a start that may yet fail
    bool dead_ = false;  // it has been lost, and the next one is not on its way
    bool draining_ = false;
    bool halting_ = false;  // Sandbox::halt has not called yet
    bool closed_ = false;

    KernelHandshake handshake_;
    CopyRequest copy_;
    ClaimedEnd claimed_end_;    // of the last run
    std::string end_probe_id_;  // msg_id of the question whether it has ended
    Alarm start_alarm_;
    Alarm end_alarm_;
};

}  // namespace cellkeep::session
