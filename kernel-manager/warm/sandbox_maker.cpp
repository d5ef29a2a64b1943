// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/warm/sandbox_maker.hpp"

#include "protocol/support/completion.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <optional>
#include <utility>

namespace cellkeep::session {

/// The thread owns it until it has signalled, the waiter afterwards.
struct SandboxMaker::Making {
    sandbox::Policy policy;
    std::shared_ptr<sandbox::Zygote> zygote;
    std::shared_ptr<sandbox::BranchLauncher> launcher;
    std::optional<Result<sandbox::Sandbox>> made;

    void make() {
        made.emplace(
            launcher ? sandbox::Sandbox::create(policy, *launcher)
                     : sandbox::Sandbox::create(policy, std::move(zygote)));
    }
};

boost::asio::awaitable<Result<sandbox::Sandbox>> SandboxMaker::make(
    std::shared_ptr<SandboxMaker> self,
    sandbox::Policy policy,
    std::shared_ptr<sandbox::Zygote> zygote) {
    auto making = std::make_shared<Making>();
    making->policy = std::move(policy);
    making->zygote = std::move(zygote);
    co_return co_await run(std::move(self), std::move(making));
}

boost::asio::awaitable<Result<sandbox::Sandbox>> SandboxMaker::make_branch(
    std::shared_ptr<SandboxMaker> self,
    sandbox::Policy policy,
    std::shared_ptr<sandbox::BranchLauncher> launcher) {
    auto making = std::make_shared<Making>();
    making->policy = std::move(policy);
    making->launcher = std::move(launcher);
    co_return co_await run(std::move(self), std::move(making));
}

boost::asio::awaitable<Result<sandbox::Sandbox>> SandboxMaker::run(
    std::shared_ptr<SandboxMaker> self, std::shared_ptr<Making> making) {
    const auto done = std::make_shared<Completion<bool>>(self->io_);
    WorkThread& thread = self->threads_[self->next_++ % kSandboxesMadeAtOnce];
    // The thread hands its part of done over: its timer may only go where io runs.
    thread.run([making, signal = done, work = boost::asio::make_work_guard(self->io_)]() mutable {
        making->make();
        const auto executor = work.get_executor();
        boost::asio::post(
            executor,
            [making = std::move(making), signal = std::move(signal), held = std::move(work)] {
                signal->set(true);
            });
        return WorkThread::Slice::kDone;
    });
    (void)co_await Completion<bool>::wait(done);
    co_return std::move(*making->made);
}

}  // namespace cellkeep::session
