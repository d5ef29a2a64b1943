// SPDX-License-Identifier: Apache-2.0
//
// One interpreter process inside a session's sandbox and its three channels to us: the kernel link
// and the two output pipes. Owns them and the pidfd; the sandbox owns the process itself.
// io_context thread only.
#pragma once

#include "kernel-manager/kernel/interpreter.hpp"
#include "kernel-manager/kernel/link/kernel_link.hpp"
#include "kernel-manager/kernel/process/worker_starts.hpp"
#include "kernel-manager/output/output_pipe.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/io_context.hpp>

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

/// The ends of a process's three channels: ours, or those that the process gets.
struct ChannelEnds {
    UniqueFd link;
    UniqueFd stdout_fd;
    UniqueFd stderr_fd;
};
struct Channels {
    ChannelEnds ours;    // do not block
    ChannelEnds theirs;  // block
};
Result<Channels> make_channels();

/// A process that a sleeping copy has forked and that waits until it is spoken to.
struct WokenProcess {
    pid_t forked = 0;  // its number inside, as the guest says
    ChannelEnds ends;  // ours
    /// Not empty: asked when pid 1 has adopted it, before it is spoken to. done is called later,
    /// once, and an error ends it.
    std::function<void(const UniqueFd& pidfd, std::function<void(Status)> done)> admit = {};
    /// Of one that leaves for a branch: held for as long as it may be in a cgroup of the sandbox
    /// that it comes from.
    std::shared_ptr<void> stay = {};
    /// Threads and tasks go on in it as soon as it is spoken to: nothing may be left of the
    /// interpreter before it, which has locks, ports and memory.
    bool runs_by_itself = false;
};

class KernelProcess final : public Interpreter {
 public:
    /// Returns before there is a process: it is started as WorkerStarts does it. What is sent to it
    /// meanwhile waits in the socket, and a signal until it is born.
    static Result<std::unique_ptr<KernelProcess>> start(
        boost::asio::io_context& io,
        WorkerStarts& starts,
        std::vector<std::string> argv,
        std::vector<std::string> env,
        std::string working_directory,  // absolute, inside
        bool warm,                      // sandbox::WorkerSpec::warm
        sandbox::WorkerGroup group,     // sandbox::WorkerSpec::group
        Events events);
    /// The same of a process that is there: it is adopted as a worker of the group. What is sent to
    /// it waits until that is done.
    static Result<std::unique_ptr<KernelProcess>> take_over(
        boost::asio::io_context& io,
        WorkerStarts& starts,
        WokenProcess woken,
        sandbox::WorkerGroup group,
        Events events);

    /// The same of one that another program in this process has left.
    static Result<std::unique_ptr<KernelProcess>> go_on(
        boost::asio::io_context& io, PassedInterpreter passed, Events events);

    KernelProcess(const KernelProcess&) = delete;
    KernelProcess& operator=(const KernelProcess&) = delete;
    ~KernelProcess() override;

    sandbox::WorkerId id() const override { return start_->id(); }
    Status send(const protocol::Message& message) override { return send_with(message, {}); }
    Status send_with(const protocol::Message& message, UniqueFd descriptor) override;
    /// pidfd_send_signal(2). Before its birth it keeps one signal, SIGKILL rather than another.
    Status send_signal(int number) const override;

    bool drain_pipes(int also) override;
    void drain_all() override;
    bool is_at_rest() const override;
    PassedInterpreter pass_on() override;
    void pause_reading() override;
    void resume_reading() override;

 private:
    using Admit = decltype(WokenProcess::admit);
    KernelProcess() = default;
    /// Connects our ends.
    static Result<std::unique_ptr<KernelProcess>> connect(
        boost::asio::io_context& io, ChannelEnds ends, Events& events);
    void listen();
    /// connect(), and asks for the worker.
    static Result<std::unique_ptr<KernelProcess>> begin(
        boost::asio::io_context& io,
        WorkerStarts& starts,
        ChannelEnds ends,
        sandbox::WorkerSpec spec,
        Events events,
        Admit admit = nullptr);
    void on_born(UniqueFd pidfd);
    void speak();

    std::shared_ptr<WorkerStart> start_;
    UniqueFd pidfd_;                // invalid until it is born
    mutable int early_signal_ = 0;  // for its birth; 0: none
    bool holds_messages_ = false;   // until its birth
    std::vector<protocol::Message> early_messages_;
    Admit admit_;
    bool is_awaited_ = false;  // admit_ has not said yes
    std::function<void(const Error&)> on_failed_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for who calls back later
    std::shared_ptr<KernelLink> link_;
    std::shared_ptr<OutputPipe> stdout_;
    std::shared_ptr<OutputPipe> stderr_;
};

}  // namespace cellkeep::session
