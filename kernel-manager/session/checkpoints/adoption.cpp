// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/checkpoints/adoption.hpp"

#include <utility>

namespace cellkeep::session {

Result<std::shared_ptr<Adoption>> Adoption::begin(
    boost::asio::io_context& io,
    KernelStarter& starter,
    pid_t forked,
    sandbox::WorkerGroup born_in) {
    auto adoption = std::make_shared<Adoption>(io);
    const auto settle = [weak = std::weak_ptr<Adoption>(adoption)](Result<sandbox::Worker> worker) {
        if (const auto waited = weak.lock()) {
            waited->settle(std::move(worker));
        }
    };
    BOOST_OUTCOME_TRY(adoption->start_, starter.adopt_copy(forked, born_in, settle));
    return adoption;
}

void Adoption::settle(Result<sandbox::Worker> worker) {
    if (worker.has_error()) {
        done_.set(std::move(worker).error());
        return;
    }
    worker_ = std::move(worker).value();
    done_.set(ok());
}

boost::asio::awaitable<Result<sandbox::Worker>> Adoption::wait(std::shared_ptr<Adoption> adoption) {
    const Status done = co_await Completion<Status>::wait(
        std::shared_ptr<Completion<Status>>(adoption, &adoption->done_));
    if (done.has_error()) {
        co_return Error(
            ErrorCode::kUnavailable,
            "checkpoint: the copy cannot be taken: " + done.error().message());
    }
    co_return std::move(*adoption->worker_);
}

}  // namespace cellkeep::session
