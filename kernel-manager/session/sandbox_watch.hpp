// SPDX-License-Identifier: Apache-2.0
//
// Waits for what pid 1 of a sandbox reports, and passes each report on in its order
// (sandbox_inbox.hpp). io_context thread only.
#pragma once

#include "kernel-manager/session/sandbox_inbox.hpp"
#include "protocol/support/alarm.hpp"
#include "protocol/support/result.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <functional>
#include <memory>

namespace cellkeep::session {

class SandboxWatch {
 public:
    /// None is empty; each may close the watch.
    struct Listener {
        /// Nothing more is reported.
        std::function<void()> on_sandbox_died;
        std::function<void(const sandbox::WorkerExit&)> on_worker_exit;
        std::function<void()> on_swept;
        std::function<void(sandbox::WorkerGroup)> on_group_swept;
        std::function<void(const sandbox::Denial&)> on_denied;
    };

    SandboxWatch(
        boost::asio::io_context& io,
        SandboxInbox::Source source,
        Listener listener,
        KeepAlive keep_session);
    SandboxWatch(const SandboxWatch&) = delete;
    SandboxWatch& operator=(const SandboxWatch&) = delete;
    ~SandboxWatch() = default;

    /// fd announces reports while it is readable. It stays its owner's; the watch keeps a
    /// duplicate.
    Status begin(int fd);
    /// Passes on the refusals of the filter that have come, ahead of their turn. Whatever else is
    /// there follows in a turn of the loop of its own.
    void take_denials();
    /// It listens, and nothing waits here to be passed on.
    bool is_at_rest() const { return descriptor_.is_open() && !closed_ && inbox_.is_empty(); }
    /// It was reported that there is no sandbox any more.
    bool is_sandbox_gone() const { return sandbox_gone_; }
    void close();

 private:
    void wait();
    void take();

    boost::asio::io_context& io_;
    SandboxInbox inbox_;
    const Listener listener_;
    const KeepAlive keep_session_;
    boost::asio::posix::stream_descriptor descriptor_;
    bool closed_ = false;
    bool sandbox_gone_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace cellkeep::session
