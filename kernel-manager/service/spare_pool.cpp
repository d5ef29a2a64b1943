// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/spare_pool.hpp"

#include "kernel-manager/kernel/kernel_state.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace cellkeep::session {

using std::chrono::steady_clock;

SparePool::Asking::Asking(std::shared_ptr<SparePool> pool, const SessionOptions& asked)
    : pool_(std::move(pool)) {
    const auto now = steady_clock::now();
    pool_->demand_.note(asked, now);
    if (pool_->asking_++ == 0) {
        pool_->asking_since_ = now;
    }
}

SparePool::Asking::~Asking() {
    --pool_->asking_;
    pool_->fill();
}

std::shared_ptr<SparePool> SparePool::create(
    boost::asio::io_context& io, SpareDemand demand, Hooks hooks) {
    return std::shared_ptr<SparePool>(new SparePool(io, std::move(demand), std::move(hooks)));
}

SparePool::SparePool(boost::asio::io_context& io, SpareDemand demand, Hooks hooks)
    : io_(io),
      demand_(std::move(demand)),
      hooks_(std::move(hooks)),
      retry_timer_(io),
      demand_timer_(io) {}

std::size_t SparePool::count_ready(const SessionOptions& kind) const {
    return static_cast<std::size_t>(
        std::count_if(ready_.begin(), ready_.end(), [&](const Spare& spare) {
            return fits(spare->options(), kind);
        }));
}

std::optional<SessionOptions> SparePool::missing() const {
    for (const Kind& kind : demand_.wanted(steady_clock::now())) {
        const auto coming = std::count_if(
            being_made_.begin(), being_made_.end(), [&](const SessionOptions& options) {
                return fits(options, kind.options);
            });
        if (count_ready(kind.options) + static_cast<std::size_t>(coming) < kind.count) {
            return kind.options;
        }
    }
    return std::nullopt;
}

bool SparePool::should_defer() const {
    return asking_ > 0 && steady_clock::now() - asking_since_ < kSpareDeferralMost;
}

void SparePool::fill() {
    if (stopped_ || should_defer()) {
        return;
    }
    drop_unwanted();
    while (!waiting_ && being_made_.size() < kSparesMadeAtOnce) {
        const std::optional<SessionOptions> kind = missing();
        if (!kind.has_value() || !hooks_.has_room(being_made_.size())) {
            break;
        }
        being_made_.push_back(*kind);
        boost::asio::co_spawn(
            io_,
            [self = shared_from_this(), options = *kind] { return self->make_one(options); },
            boost::asio::detached);
    }
    watch_demand();
    if (being_made_.empty()) {
        announce_settled();
    }
}

void SparePool::announce_settled() const {
    if (hooks_.on_settled) {
        hooks_.on_settled();
    }
}

void SparePool::drop_unwanted() {
    const auto now = steady_clock::now();
    for (std::size_t i = ready_.size(); i-- > 0;) {
        const SessionOptions& options = ready_[i]->options();
        if (count_ready(options) > demand_.wanted(options, now)) {
            const Spare spare = std::move(ready_[i]);
            ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(i));
            hooks_.discard(spare);
        }
    }
}

void SparePool::watch_demand() {
    const auto at = demand_.declines_at(steady_clock::now());
    if (!at.has_value() || *at == demand_timer_.expiry()) {
        return;
    }
    demand_timer_.expires_at(*at);
    demand_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        if (const auto self = weak.lock(); !error && self) {
            self->fill();
        }
    });
}

void SparePool::announce_made(bool ready) {
    if (const auto made = std::exchange(made_, nullptr)) {
        made->set(ready);
    }
}

boost::asio::awaitable<void> SparePool::make_one(SessionOptions options) {
    const auto self = shared_from_this();
    const std::uint64_t generation = generation_;
    auto made = co_await hooks_.make(options);
    being_made_.erase(
        std::find_if(being_made_.begin(), being_made_.end(), [&](const SessionOptions& one) {
            return fits(one, options);
        }));
    if (made.has_error()) {
        announce_made(false);
        if (!stopped_) {
            hooks_.log("no spare session could be made: " + made.error().message());
            fill_later();
            announce_settled();
        }
        co_return;
    }
    if (stopped_ || generation != generation_) {
        hooks_.discard(made.value());
    } else {
        ready_.push_back(std::move(made).value());
    }
    announce_made(true);
    fill();
}

void SparePool::fill_later() {
    if (std::exchange(waiting_, true)) {
        return;
    }
    retry_timer_.expires_after(retry_delay_.take());
    retry_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        if (const auto self = weak.lock(); !error && self) {
            self->waiting_ = false;
            self->fill();
        }
    });
}

SparePool::Spare SparePool::take(const SessionOptions& asked) {
    const auto found = std::find_if(ready_.begin(), ready_.end(), [&](const Spare& spare) {
        return spare->state() == KernelState::kIdle && fits(spare->options(), asked);
    });
    if (found == ready_.end()) {
        return nullptr;
    }
    Spare spare = std::move(*found);
    ready_.erase(found);
    retry_delay_.reset();  // it lived until it was needed
    return spare;
}

bool SparePool::give_way() {
    if (ready_.empty()) {
        return false;
    }
    auto victim = std::find_if(ready_.rbegin(), ready_.rend(), [this](const Spare& spare) {
        const SessionOptions& options = spare->options();
        return count_ready(options) > demand_.wanted_always(options);
    });
    if (victim == ready_.rend()) {
        victim = ready_.rbegin();
    }
    const Spare spare = std::move(*victim);
    ready_.erase(std::next(victim).base());
    hooks_.discard(spare);
    return true;
}

void SparePool::renew() {
    ++generation_;
    for (const Spare& spare : std::exchange(ready_, {})) {
        hooks_.discard(spare);
    }
    fill();
}

void SparePool::drop(const std::string& session_id) {
    const auto found = std::find_if(ready_.begin(), ready_.end(), [&](const Spare& spare) {
        return spare->id() == session_id;
    });
    if (found == ready_.end()) {
        return;
    }
    const Spare spare = std::move(*found);
    ready_.erase(found);
    hooks_.discard(spare);
    hooks_.log("a spare session has died and will be replaced");
    fill_later();
}

boost::asio::awaitable<bool> SparePool::wait_for_making() {
    if (!is_making()) {
        co_return false;
    }
    if (!made_) {
        made_ = std::make_shared<Completion<bool>>(io_);
    }
    const auto made = made_;
    co_return co_await Completion<bool>::wait(made);
}

void SparePool::stop() {
    stopped_ = true;
    retry_timer_.cancel();
    demand_timer_.cancel();
    while (give_way()) {
    }
}

}  // namespace cellkeep::session
