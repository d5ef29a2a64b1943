// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/warm/sandbox_maker.hpp"

#include "protocol/support/completion.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <optional>
#include <utility>

namespace cellkeep::session {

namespace {

/// The thread owns it until it has signalled, the waiter afterwards.
struct Making {
    sandbox::Policy policy;
    std::shared_ptr<sandbox::Zygote> zygote;
    std::optional<Result<sandbox::Sandbox>> made;
};

}  // namespace

boost::asio::awaitable<Result<sandbox::Sandbox>> SandboxMaker::make(
    std::shared_ptr<SandboxMaker> self,
    sandbox::Policy policy,
    std::shared_ptr<sandbox::Zygote> zygote) {
    auto making = std::make_shared<Making>();
    making->policy = std::move(policy);
    making->zygote = std::move(zygote);
    const auto done = std::make_shared<Completion<bool>>(self->io_);
    WorkThread& thread = self->threads_[self->next_++ % kSandboxesMadeAtOnce];
    // The thread hands its part of done over: its timer may only go where io runs.
    thread.run([making, signal = done, work = boost::asio::make_work_guard(self->io_)]() mutable {
        making->made.emplace(sandbox::Sandbox::create(making->policy, std::move(making->zygote)));
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
