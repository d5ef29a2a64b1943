// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/branch_making.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

namespace cellkeep::api {

BranchMaking::BranchMaking(
    boost::asio::any_io_executor executor,
    session::SessionService& sessions,
    std::string parent,
    std::string checkpoint,
    BranchesOrder order)
    : executor_(std::move(executor)),
      sessions_(sessions),
      parent_(std::move(parent)),
      checkpoint_(std::move(checkpoint)),
      order_(std::move(order)),
      made_(order_.count),
      ended_(executor_, boost::asio::steady_timer::time_point::max()) {}

boost::asio::awaitable<std::vector<BranchMaking::Made>> BranchMaking::make_all(
    std::shared_ptr<BranchMaking> self) {
    self->workers_ = std::min(kBranchesMadeAtOnce, self->order_.count);
    for (std::size_t i = self->workers_; i > 0; --i) {
        boost::asio::co_spawn(
            self->executor_, [self] { return self->work(); }, boost::asio::detached);
    }
    while (self->workers_ > 0) {
        boost::system::error_code cancelled;  // that is how the last worker wakes us
        co_await self->ended_.async_wait(
            boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
    }
    std::vector<Made> all;
    for (std::optional<Made>& one : self->made_) {
        all.push_back(one ? std::move(*one) : Made(*self->full_));
    }
    co_return all;
}

boost::asio::awaitable<void> BranchMaking::work() {
    const auto self = shared_from_this();
    while (!full_ && next_ < made_.size()) {
        const std::size_t index = next_++;
        session::BranchOrder one{
            .session = parent_,
            .checkpoint = checkpoint_,
            .label =
                index < order_.labels.size() ? std::optional(order_.labels[index]) : std::nullopt,
            .reseed = order_.reseed};
        Made made = co_await sessions_.branch(std::move(one));
        if (made.has_error() && made.error().code() == ErrorCode::kLimitExceeded) {
            full_ = made.error();
        }
        made_[index].emplace(std::move(made));
    }
    --workers_;
    ended_.cancel();
}

}  // namespace cellkeep::api
