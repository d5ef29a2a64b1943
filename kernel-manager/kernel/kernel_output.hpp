// SPDX-License-Identifier: Apache-2.0
//
// What is said of one kernel on its way out: by the kernel itself, and by the server in its place.
// Notes it as activity, records it for the execution that runs, shows it to front ends, and makes
// the kernel wait while they cannot take more. io_context thread only.
//
// Front ends get stream messages that follow each other as one (StreamJoiner). A kernel sends a
// loop's first line at once and the others together. nbclient makes one output of each message
// (NotebookClient.output(); its coalesce_streams is off), so a notebook that it executes would have
// two outputs where ipykernel, which gathers text for 200 ms (OutStream.flush_interval), leaves
// one. So the first line waits too: for at most kStreamJoinTimeMax, and only until its run ends or
// front ends have to see something else. What an execution has said is recorded at once: its
// readers join the texts themselves, and an agent gets the first line without delay.
#pragma once

#include "kernel-manager/kernel/running_request.hpp"
#include "kernel-manager/output/output_fanout.hpp"
#include "kernel-manager/output/stream_joiner.hpp"
#include "protocol/message.hpp"
#include "protocol/support/alarm.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace cellkeep::session {

/// How long stream text of one stream and one request may wait for more of it before front ends see
/// it. The lines of a short loop came within 4 ms on two cores that 24 other processes kept busy.
inline constexpr std::chrono::milliseconds kStreamJoinTimeMax{20};

class KernelOutput {
 public:
    /// None is empty.
    struct Hooks {
        /// Every message, before it goes out. running: the request that is with the kernel; null if
        /// there is none.
        std::function<void(const protocol::Message&, const protocol::Message* running)> note;
        /// Stops and continues reading what the kernel says. Both may be called at any time.
        std::function<void()> pause_reading;
        std::function<void()> resume_reading;
    };

    /// fanout: where front ends watch; null if they watch another kernel of the session. The
    /// workspace gets texts that are too long for an answer. Both live longer.
    KernelOutput(
        boost::asio::io_context& io,
        OutputFanout* fanout,
        const sandbox::Workspace& workspace,
        Hooks hooks,
        KeepAlive keep_alive);
    KernelOutput(const KernelOutput&) = delete;
    KernelOutput& operator=(const KernelOutput&) = delete;
    ~KernelOutput() = default;

    /// A message on iopub. May end the session: front ends are called.
    void publish(protocol::Message message);
    /// Shows at once what waits to be joined: before what reaches a client by another way than
    /// publish(), such as a reply. May end the session.
    void flush();

    /// Nothing waits to be joined.
    bool is_at_rest() const { return joiner_.empty(); }
    /// What waits to be joined, for another program in this process, and from one.
    std::optional<protocol::Message> pass_on();
    void go_on(protocol::Message joined);

    // --- the run whose output it is
    /// The run must stay where it is until end_run().
    void begin_run(const RunningRequest& run) { run_ = &run; }
    void end_run() { run_ = nullptr; }
    /// Text from the kernel's pipes follows from the request that was begun last.
    void set_text_parent(std::string header_json) { text_parent_ = std::move(header_json); }
    /// JSON text; "{}" if it follows from no request.
    const std::string& text_parent() const { return text_parent_; }

    // --- back-pressure
    /// A deadline or an interrupt must get through, also if a front end cannot take more.
    void lift_pressure();
    void restore_pressure();
    /// The same after limits::kInterruptGrace, unless the run has passed a limit by then: code that
    /// survives an interrupt feels a slow client again.
    void restore_pressure_soon();
    /// The kernel has ended: until its last output has been taken, the pressure stays as it is.
    void keep_pressure() { restore_alarm_.cancel(); }

 private:
    void join(protocol::Message message);
    void show(protocol::Message message);

    OutputFanout* fanout_;
    const sandbox::Workspace& workspace_;
    const Hooks hooks_;
    const RunningRequest* run_ = nullptr;
    std::string text_parent_ = "{}";
    bool pressure_lifted_ = false;
    Alarm restore_alarm_;
    StreamJoiner joiner_;
    Alarm join_alarm_;
};

}  // namespace cellkeep::session
