// SPDX-License-Identifier: Apache-2.0
//
// The one request that is with an interpreter, from its turn in the queue to its end: how far it
// has come, when its deadlines pass, and how it is cut short. The cut is a ladder: an interrupt, a
// grace, the kill. A state machine without a clock, a process or a socket: the caller says what
// time it is, what CPU time was used and what the interpreter said, and does as its caller decides.
// Not thread-safe.
#pragma once

#include "kernel-manager/execution/execution_recorder.hpp"
#include "kernel-manager/execution/file_writing.hpp"
#include "kernel-manager/kernel/request_queue.hpp"
#include "kernel-manager/limits/limit_reason.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace cellkeep::session {

class RunningRequest {
 public:
    using Time = std::chrono::steady_clock::time_point;
    /// CPU time since any fixed moment; the same clock for every call.
    using Cpu = std::chrono::microseconds;

    /// What a look at a limit says.
    struct Look {
        bool passed = false;
        /// Unless it has passed: it cannot pass sooner than this.
        std::chrono::nanoseconds again_in{0};
    };

    /// What the caller does to cut the request short.
    enum class CutStep {
        kInterrupt,  // send SIGINT now
        kWait,       // on_busy() will ask for the SIGINT: a kernel ignores it before that
        kAbandon,    // stop the writing of its files and end it: its code was never sent
    };

    /// number tells this request from every other that its interpreter had: a late timer cannot hit
    /// the wrong one.
    RunningRequest(PendingRequest request, std::uint64_t number, Time started_at, Cpu cpu);

    // --- what it is
    std::uint64_t number() const { return number_; }
    const PendingRequest& request() const { return request_; }
    const protocol::Message& message() const { return request_.message; }
    /// Null for a Jupyter client's request.
    const std::shared_ptr<TrackedExecution>& execution() const { return request_.execution; }
    /// Returns whether the message is the interpreter's answer to this request.
    bool is_parent_of(const protocol::Message& message) const;
    PendingRequest take_request() { return std::move(request_); }

    // --- the files that come with it
    /// Its code waits until the files are in place.
    void begin_writing(std::shared_ptr<FileWriting> writing) { writing_ = std::move(writing); }
    const std::shared_ptr<FileWriting>& writing() const { return writing_; }
    void end_writing() { writing_.reset(); }
    /// They could not be put in place.
    void refuse(Error why) { refusal_ = std::move(why); }
    const std::optional<Error>& refusal() const { return refusal_; }

    // --- what the interpreter does with it
    void on_sent() { sent_ = true; }
    bool is_sent() const { return sent_; }
    /// The interpreter has said busy. Returns whether an interrupt waited for that: send it now.
    bool on_busy();
    bool is_begun() const { return begun_; }
    /// Returns false for a reply after the first.
    bool on_reply();
    bool is_replied() const { return replied_; }
    /// The interpreter has shown an error of the code. The last one counts.
    void on_error_shown(Time now) { error_shown_at_ = now; }
    bool has_shown_error_since(Time then) const {
        return error_shown_at_.has_value() && *error_shown_at_ >= then;
    }
    /// When clients saw that the code failed: now, if no error was shown.
    Time error_shown_at(Time now) const { return error_shown_at_.value_or(now); }
    /// The code asks for input. Returns false while an earlier question is open.
    bool on_input_request(const protocol::Message& question);
    /// The question that is open.
    const std::optional<protocol::Message>& question() const { return question_; }
    /// Returns whether the reply is one to the open question, and closes it then: of the client
    /// whose cell asked, or of one that was given the question since and names it as parent.
    bool take_input_reply(const protocol::Message& reply);

    // --- its deadlines
    /// runs: how many requests of the session use up the same budget at the same time.
    Look look_at_wall(Time now, std::chrono::nanoseconds limit, std::size_t runs);
    /// By the last look at it.
    Time wall_deadline() const { return wall_deadline_; }
    Look look_at_cpu(Cpu now, Cpu limit, double cores) const;
    Cpu cpu_used(Cpu now) const { return now - cpu_at_start_; }
    /// From now on CPU time is read from another clock, which is ahead by this.
    void change_cpu_clock(Cpu ahead);

    // --- its cut
    Cut cut() const { return cut_; }
    /// Somebody asks for its end. A limit that it has passed stays its reason.
    CutStep interrupt();
    /// It has passed a limit, which replaces an earlier interrupt as its reason.
    CutStep cut_short(Cut limit, Time now, Cpu cpu);
    /// After cut_short(): passed when the interpreter has to be killed. It has had CPU time to act
    /// on the interrupt (limits::kInterruptCpuGrace) and time (kInterruptGrace), or the longest
    /// grace is over (kInterruptGraceMax, counted from the deadline).
    Look look_at_grace(Time now, Cpu cpu, double cores) const;

    // --- its end
    void settle(Cpu cpu_at_end) { cpu_at_end_ = cpu_at_end; }
    void set_hit(LimitHit hit) { hit_ = std::move(hit); }
    /// The limit that it ended with; known when the interpreter has said idle or has died.
    const std::optional<LimitHit>& hit() const { return hit_; }
    void own_memory_peak() { peak_is_own_ = true; }
    /// Without the highest memory use if that is unknown.
    ExecutionMetrics measure(Time now, std::optional<std::uint64_t> memory_peak) const;

    // --- its way to another program in this process
    /// It is an execution whose code runs. It is not being cut short, it does not ask for input,
    /// and its reply has not come.
    bool can_pass() const;
    /// What is known of such a request besides the request itself.
    struct Passed {
        Time started_at;
        Cpu cpu_at_start{0};
    };
    Passed pass_on() const { return {started_at_, cpu_at_start_}; }
    /// The interpreter has it, and has said busy. Its memory's peak is not its own: with cgroup v2
    /// the peak counts anew from a write for the descriptor alone that was written to.
    static RunningRequest go_on(PendingRequest request, std::uint64_t number, const Passed& passed);

 private:
    CutStep next_step();

    PendingRequest request_;
    std::uint64_t number_;
    Time started_at_;
    Cpu cpu_at_start_;
    Cpu cpu_at_end_{0};
    bool peak_is_own_ = false;  // the memory's peak counts from its start

    std::shared_ptr<FileWriting> writing_;
    std::optional<Error> refusal_;
    bool sent_ = false;
    bool begun_ = false;
    bool replied_ = false;
    std::optional<Time> error_shown_at_;
    std::optional<protocol::Message> question_;  // not answered yet

    Cut cut_ = Cut::kNone;
    bool interrupt_at_busy_ = false;
    Time wall_deadline_;  // by the last look
    Time interrupted_at_;
    Cpu cpu_at_interrupt_{0};
    Time kill_at_most_;
    std::optional<LimitHit> hit_;
};

}  // namespace cellkeep::session
