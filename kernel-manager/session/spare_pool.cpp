// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/spare_pool.hpp"

#include "kernel-manager/session/start_variables.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <utility>

namespace cellkeep::session {

bool fits(const SessionOptions& spare, const SessionOptions& asked) {
    const SessionLimits& made = spare.limits;
    const SessionLimits& wanted = asked.limits;
    const bool same_sandbox = made.cpu_cores == wanted.cpu_cores &&
                              made.memory_mb == wanted.memory_mb &&
                              made.disk_mb == wanted.disk_mb && made.processes == wanted.processes;
    return same_sandbox && spare.language == asked.language &&
           spare.environment == asked.environment && spare.network == asked.network &&
           !has_start_variables(asked.env);
}

std::shared_ptr<SparePool> SparePool::create(
    boost::asio::io_context& io, std::vector<Kind> kinds, Hooks hooks) {
    return std::shared_ptr<SparePool>(new SparePool(io, std::move(kinds), std::move(hooks)));
}

SparePool::SparePool(boost::asio::io_context& io, std::vector<Kind> kinds, Hooks hooks)
    : io_(io), kinds_(std::move(kinds)), hooks_(std::move(hooks)), retry_timer_(io) {}

const SparePool::Kind* SparePool::missing() const {
    for (const Kind& kind : kinds_) {
        const auto ready = std::count_if(ready_.begin(), ready_.end(), [&](const Spare& spare) {
            return fits(spare->options(), kind.options);
        });
        const auto coming = std::count_if(
            being_made_.begin(), being_made_.end(), [&](const SessionOptions& options) {
                return fits(options, kind.options);
            });
        if (static_cast<std::size_t>(ready + coming) < kind.count) {
            return &kind;
        }
    }
    return nullptr;
}

void SparePool::fill() {
    while (!stopped_ && !waiting_ && being_made_.size() < kSparesMadeAtOnce) {
        const Kind* kind = missing();
        if (kind == nullptr || !hooks_.has_room(being_made_.size())) {
            return;
        }
        being_made_.push_back(kind->options);
        boost::asio::co_spawn(
            io_,
            [self = shared_from_this(), options = kind->options] {
                return self->make_one(options);
            },
            boost::asio::detached);
    }
}

void SparePool::tell(bool ready) {
    if (const auto made = std::exchange(made_, nullptr)) {
        made->set(ready);
    }
}

boost::asio::awaitable<void> SparePool::make_one(SessionOptions options) {
    const auto self = shared_from_this();
    auto made = co_await hooks_.make(options);
    being_made_.erase(
        std::find_if(being_made_.begin(), being_made_.end(), [&](const SessionOptions& one) {
            return fits(one, options);
        }));
    if (made.has_error()) {
        tell(false);
        if (!stopped_) {
            hooks_.log("no spare session could be made: " + made.error().message());
            fill_later();
        }
        co_return;
    }
    if (stopped_) {
        hooks_.discard(made.value());
    } else {
        ready_.push_back(std::move(made).value());
    }
    tell(true);
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
    fill();
    return spare;
}

bool SparePool::give_way() {
    if (ready_.empty()) {
        return false;
    }
    const Spare spare = std::move(ready_.back());
    ready_.pop_back();
    hooks_.discard(spare);
    return true;
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
    while (give_way()) {
    }
}

}  // namespace cellkeep::session
