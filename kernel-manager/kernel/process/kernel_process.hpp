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

#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

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

    KernelProcess(const KernelProcess&) = delete;
    KernelProcess& operator=(const KernelProcess&) = delete;
    ~KernelProcess() override;

    sandbox::WorkerId id() const override { return start_->id(); }
    Status send(const protocol::Message& message) override { return link_->send(message); }
    /// pidfd_send_signal(2). Before its birth it keeps one signal, SIGKILL rather than another.
    Status send_signal(int number) const override;

    void drain_pipes() override;
    void drain_all() override;
    void pause_reading() override;
    void resume_reading() override;

 private:
    KernelProcess() = default;
    void on_born(UniqueFd pidfd);

    std::shared_ptr<WorkerStart> start_;
    UniqueFd pidfd_;                // invalid until it is born
    mutable int early_signal_ = 0;  // for its birth; 0: none
    std::shared_ptr<KernelLink> link_;
    std::shared_ptr<OutputPipe> stdout_;
    std::shared_ptr<OutputPipe> stderr_;
};

}  // namespace cellkeep::session
