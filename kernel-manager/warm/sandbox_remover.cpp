// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/warm/sandbox_remover.hpp"

#include "protocol/support/completion.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <optional>
#include <utility>

namespace cellkeep::session {

namespace {

/// The thread owns it until it has signalled, the waiter afterwards.
struct Removing {
    std::shared_ptr<sandbox::Sandbox> sandbox;
    std::optional<Status> result;
    std::promise<void> tried;
};

}  // namespace

boost::asio::awaitable<Status> SandboxRemover::destroy(
    std::shared_ptr<SandboxRemover> self, std::shared_ptr<sandbox::Sandbox> sandbox) {
    const Action action = [](sandbox::Sandbox& one) { return one.destroy(kRemovalPatience); };
    co_return co_await run(std::move(self), std::move(sandbox), action);
}

boost::asio::awaitable<Status> SandboxRemover::retire(
    std::shared_ptr<SandboxRemover> self, std::shared_ptr<sandbox::Sandbox> sandbox) {
    const Action action = [](sandbox::Sandbox& one) { return one.retire(); };
    co_return co_await run(std::move(self), std::move(sandbox), action);
}

boost::asio::awaitable<Status> SandboxRemover::run(
    std::shared_ptr<SandboxRemover> self,
    std::shared_ptr<sandbox::Sandbox> sandbox,
    Action action) {
    const auto removing = std::make_shared<Removing>();
    removing->sandbox = std::move(sandbox);
    const auto tried = self->tried_.insert(self->tried_.end(), removing->tried.get_future());
    const auto done = std::make_shared<Completion<bool>>(self->io_);
    WorkThread& thread = self->threads_[self->next_++ % kSandboxesRemovedAtOnce];
    // The thread hands its part of done over: its timer may only go where io runs.
    thread.run([removing,
                action,
                signal = done,
                work = boost::asio::make_work_guard(self->io_)]() mutable {
        removing->result.emplace(action(*removing->sandbox));
        removing->tried.set_value();
        const auto executor = work.get_executor();
        boost::asio::post(
            executor, [signal = std::move(signal), held = std::move(work)] { signal->set(true); });
        return WorkThread::Slice::kDone;
    });
    (void)co_await Completion<bool>::wait(done);
    self->tried_.erase(tried);
    co_return std::move(*removing->result);
}

void SandboxRemover::wait() {
    for (std::future<void>& one : tried_) {
        one.wait();
    }
}

}  // namespace cellkeep::session
