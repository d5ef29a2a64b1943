// SPDX-License-Identifier: Apache-2.0
//
// What the lanes of one session have in common: how the session was made, its sandbox and its
// account; and what a lane tells its session. Owned by LiveSession. io_context thread only.
#pragma once

#include "kernel-manager/egress/gateway.hpp"
#include "kernel-manager/execution/death.hpp"
#include "kernel-manager/execution/execution_recorder.hpp"
#include "kernel-manager/execution/inputs_directory.hpp"
#include "kernel-manager/execution/saved_texts.hpp"
#include "kernel-manager/execution/work_thread.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/kernel/request_queue.hpp"
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "kernel-manager/limits/limit_reason.hpp"
#include "kernel-manager/limits/session_account.hpp"
#include "kernel-manager/output/journal.hpp"
#include "kernel-manager/session/cpu_clock.hpp"
#include "kernel-manager/session/session.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/message.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::session {

class KernelLane;

/// How a session is made.
struct SessionSetup {
    std::string id;
    std::string kernel_id;
    SessionOptions options;
    KernelSpec spec;  // of its main kernel
    /// What else may run in its sandbox; null: nothing.
    std::shared_ptr<const KernelCatalog> catalog = nullptr;
    std::vector<std::string> network_env = {};    // "NAME=value", for every kernel
    std::shared_ptr<egress::Gateway> gateway;     // null: the server gives no network
    std::shared_ptr<egress::SessionProxy> proxy;  // null: this session has none
    std::chrono::milliseconds start_timeout{0};
    /// At rest for so long, the sandbox is frozen until it is needed; 0: never.
    std::chrono::seconds freeze_after{0};
    std::function<void(bool frozen)> log_frozen;  // may be empty
    /// A client asked for shutdown, the session is idle or old, or it is a spare that died: the
    /// Service removes it.
    std::function<void(Death)> on_end_requested;
    /// One line for the server's log.
    std::function<void(const std::string&)> log;
    /// A run ended with a limit; the execution's id is empty for a Jupyter client's.
    std::function<void(const std::string& execution_id, const LimitHit&)> log_limit;
    /// Reads what executions leave.
    std::shared_ptr<WorkThread> work_thread;
    /// Reads the operator's inputs, whose disk may stall: nothing else waits for it.
    std::shared_ptr<WorkThread> inputs_thread;
    std::shared_ptr<const InputsDirectory> inputs;  // null: there is none
    Session::Inputs mounted;                        // of them, in this sandbox
    /// Made in advance, for nobody: neither culled nor restarted until it is handed out.
    bool spare = false;

    /// Whether code of that language may run in its sandbox beside its own.
    bool offers(const std::string& language) const {
        return catalog && catalog->find(language) != nullptr;
    }
    /// Of a language that it does not offer (refuse_language()).
    Error refuse(const std::string& language) const {
        return catalog ? catalog->refuse(language) : refuse_language(language, {});
    }
};

struct SessionCommons {
    SessionCommons(boost::asio::io_context& context, SessionSetup how, sandbox::Sandbox made);

    boost::asio::io_context& io;
    SessionSetup setup;
    sandbox::Sandbox sandbox;
    sandbox::Workspace workspace;  // a view of sandbox
    SessionAccount account;
    OutputJournal journal;  // what Jupyter clients can see: the main lane's output
    SavedTexts saved_texts;
    bool closed = false;
    std::size_t queued_bytes = 0;  // of the requests that wait, whatever their language

    const SessionLimits& limits() const { return setup.options.limits; }
    /// Since the sandbox was made; zeros where there is no cgroup to ask. While the counter of CPU
    /// time cannot be read, it goes on as if a run used all processors of the session (CpuClock).
    sandbox::Usage counters();
    /// The same of one group's CPU time; nothing if it has no counter of its own.
    std::optional<std::chrono::microseconds> cpu_time(sandbox::WorkerGroup group);

 private:
    std::chrono::microseconds see_cpu(
        CpuClock& clock, std::optional<std::chrono::microseconds> counted);

    CpuClock cpu_clock_;
    std::map<sandbox::WorkerGroup, CpuClock> group_clocks_;  // at most kSessionLanguagesMax
};

/// A lane's session. It outlives its lanes; whoever must keep a lane keeps the session.
class LaneHost {
 public:
    LaneHost() = default;
    LaneHost(const LaneHost&) = delete;
    LaneHost& operator=(const LaneHost&) = delete;

    /// Null while the session is being destroyed.
    virtual std::shared_ptr<LaneHost> hold() = 0;

    /// Thaws what is inside: before anything is asked of it.
    virtual void wake() = 0;
    /// The sandbox is being used, or has just been.
    virtual void note_use() = 0;
    /// Activity, for idle culling.
    virtual void touch() = 0;
    /// An interpreter's output, while a request of people's or agents' runs or not.
    virtual void note_output(const protocol::Message& message, bool tracked_running) = 0;
    /// No other lane runs anything.
    virtual bool is_alone(const KernelLane& lane) const = 0;
    /// For the main lane: the journal, and everybody who watches. True: somebody cannot take more.
    virtual bool show(protocol::Message message) = 0;
    /// Something ended that may have kept the session from its end.
    virtual void review_life() = 0;
    virtual void on_left_dead(const Death& death) = 0;

    /// What the sandbox refused until now is told to the lanes' guards.
    virtual void take_denials() = 0;
    /// Kills what the lane's interpreter, which has ended, left running; its on_swept() is called
    /// when that is over.
    virtual Status begin_sweep(KernelLane& lane) = 0;
    /// Whether nothing can start at present, because everything is being swept: then the lane's
    /// launch_or_die() is called when that is over.
    virtual bool postpones_launch(KernelLane& lane) = 0;

    /// An execution's one answer.
    virtual void complete(TrackedExecution& tracked, ExecutionResult result) = 0;
    /// The content of a usage_reply.
    virtual nlohmann::json make_usage() = 0;

 protected:
    ~LaneHost() = default;
};

}  // namespace cellkeep::session
