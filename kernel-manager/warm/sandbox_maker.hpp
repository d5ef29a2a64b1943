// SPDX-License-Identifier: Apache-2.0
//
// Makes sandboxes without holding up the io_context thread: each takes some milliseconds, mostly
// spent in waiting for the kernel, so a few are made side by side. Its threads must live as long as
// the sandboxes (Sandbox::create). io_context thread only.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/server/branch_launcher.hpp"
#include "sandbox/server/zygote.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <array>
#include <cstddef>
#include <memory>

namespace cellkeep::session {

/// How many sandboxes are made at once. More only wait for the same locks of the kernel.
inline constexpr std::size_t kSandboxesMadeAtOnce = 4;

class SandboxMaker {
 public:
    explicit SandboxMaker(boost::asio::io_context& io) : io_(io) {}

    /// As Sandbox::create; zygote may be null. The io_context runs until it is made.
    static boost::asio::awaitable<Result<sandbox::Sandbox>> make(
        std::shared_ptr<SandboxMaker> self,
        sandbox::Policy policy,
        std::shared_ptr<sandbox::Zygote> zygote);

    /// A branch, by that launcher.
    static boost::asio::awaitable<Result<sandbox::Sandbox>> make_branch(
        std::shared_ptr<SandboxMaker> self,
        sandbox::Policy policy,
        std::shared_ptr<sandbox::BranchLauncher> launcher);

 private:
    struct Making;
    static boost::asio::awaitable<Result<sandbox::Sandbox>> run(
        std::shared_ptr<SandboxMaker> self, std::shared_ptr<Making> making);

    boost::asio::io_context& io_;
    std::array<WorkThread, kSandboxesMadeAtOnce> threads_;
    std::size_t next_ = 0;
};

}  // namespace cellkeep::session
