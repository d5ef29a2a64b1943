// SPDX-License-Identifier: Apache-2.0
//
// One interpreter process inside a session's sandbox and its three channels to us: the kernel link
// and the two output pipes. Owns them and the pidfd; the sandbox owns the process itself.
// io_context thread only.
#pragma once

#include "kernel-manager/kernel/kernel_link.hpp"
#include "kernel-manager/output/output_pipe.hpp"
#include "protocol/message.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

enum class OutputStream { kStdout, kStderr };

class KernelProcess {
 public:
    struct Events {
        std::function<void(protocol::Message)> on_message;
        std::function<void(OutputStream, std::string_view)> on_text;
        std::function<void(const Error&)> on_link_closed;
    };

    static Result<std::unique_ptr<KernelProcess>> start(
        boost::asio::io_context& io,
        sandbox::Sandbox& sandbox,
        std::vector<std::string> argv,
        std::vector<std::string> env,
        std::string working_directory,  // absolute, inside
        bool warm,                      // sandbox::WorkerSpec::warm
        sandbox::WorkerGroup group,     // sandbox::WorkerSpec::group
        Events events);

    KernelProcess(const KernelProcess&) = delete;
    KernelProcess& operator=(const KernelProcess&) = delete;
    /// Closes the channels without further events; the process is the sandbox's to kill.
    ~KernelProcess();

    sandbox::WorkerId id() const { return id_; }
    Status send(const protocol::Message& message) { return link_->send(message); }
    /// pidfd_send_signal(2): cannot hit another process.
    Status send_signal(int number) const;

    /// Hands out what is in the output pipes now: called before a cell's idle is passed on.
    void drain_pipes();
    /// Hands out everything that is left, after the process has ended.
    void drain_all();
    void pause_reading();
    void resume_reading();

 private:
    KernelProcess(sandbox::WorkerId id, UniqueFd pidfd);

    sandbox::WorkerId id_;
    UniqueFd pidfd_;
    std::shared_ptr<KernelLink> link_;
    std::shared_ptr<OutputPipe> stdout_;
    std::shared_ptr<OutputPipe> stderr_;
};

}  // namespace cellkeep::session
