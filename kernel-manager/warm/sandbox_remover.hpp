// SPDX-License-Identifier: Apache-2.0
//
// Takes sandboxes away without holding up the io_context thread: the kernel needs some milliseconds
// to end and take down what is in one, and a guest can make it seconds. Some at a time, the others
// wait. io_context thread only.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"
#include "sandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <future>
#include <list>
#include <memory>

namespace cellkeep::session {

/// How many are waited for at once. They die together, from the moment that they are handed over.
inline constexpr std::size_t kSandboxesRemovedAtOnce = 4;
/// How long one is waited for at a time: meanwhile others wait for its thread.
inline constexpr std::chrono::milliseconds kRemovalPatience{200};

class SandboxRemover {
 public:
    explicit SandboxRemover(boost::asio::io_context& io) : io_(io) {}
    SandboxRemover(const SandboxRemover&) = delete;
    SandboxRemover& operator=(const SandboxRemover&) = delete;
    /// Waits for those that are being taken away, each for kRemovalPatience at most; the rest is
    /// tried again as sandbox/cgroup/leftovers.hpp says.
    ~SandboxRemover() = default;

    /// As Sandbox::destroy with kRemovalPatience; after a failure it may be called again. The
    /// io_context runs meanwhile.
    static boost::asio::awaitable<Status> destroy(
        std::shared_ptr<SandboxRemover> self, std::shared_ptr<sandbox::Sandbox> sandbox);
    /// As Sandbox::retire.
    static boost::asio::awaitable<Status> retire(
        std::shared_ptr<SandboxRemover> self, std::shared_ptr<sandbox::Sandbox> sandbox);
    /// For the server's end: blocks until all that these two were asked for has been tried.
    void wait();

 private:
    using Action = Status (*)(sandbox::Sandbox&);
    static boost::asio::awaitable<Status> run(
        std::shared_ptr<SandboxRemover> self,
        std::shared_ptr<sandbox::Sandbox> sandbox,
        Action action);

    boost::asio::io_context& io_;
    std::list<std::future<void>> tried_;  // of the destroy() calls that have not returned yet
    std::array<WorkThread, kSandboxesRemovedAtOnce> threads_;
    std::size_t next_ = 0;
};

}  // namespace cellkeep::session
