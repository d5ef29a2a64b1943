// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/spare_pool.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace cellkeep::session {

namespace {

/// Variables that the dynamic linker, the C library or the interpreter reads when it starts.
bool is_read_at_start(std::string_view name) {
    constexpr std::array<std::string_view, 7> kPrefixes = {
        "PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "CELLKEEP_"};
    return std::any_of(kPrefixes.begin(), kPrefixes.end(), [name](std::string_view prefix) {
        return name.starts_with(prefix);
    });
}

}  // namespace

bool fits(const SessionOptions& spare, const SessionOptions& asked) {
    const SessionLimits& made = spare.limits;
    const SessionLimits& wanted = asked.limits;
    const bool same_sandbox = made.cpu_cores == wanted.cpu_cores &&
                              made.memory_mb == wanted.memory_mb &&
                              made.disk_mb == wanted.disk_mb && made.processes == wanted.processes;
    return same_sandbox && spare.language == asked.language &&
           spare.environment == asked.environment && spare.network == asked.network &&
           std::none_of(asked.env.begin(), asked.env.end(), [](const auto& variable) {
               return is_read_at_start(variable.first);
           });
}

std::shared_ptr<SparePool> SparePool::create(
    boost::asio::io_context& io, std::size_t count, Hooks hooks) {
    return std::shared_ptr<SparePool>(new SparePool(io, count, std::move(hooks)));
}

SparePool::SparePool(boost::asio::io_context& io, std::size_t count, Hooks hooks)
    : io_(io), count_(count), hooks_(std::move(hooks)), retry_timer_(io) {}

void SparePool::fill() {
    if (stopped_ || making_ || waiting_ || ready_.size() >= count_ || !hooks_.has_room()) {
        return;
    }
    making_ = std::make_shared<Completion<bool>>(io_);
    boost::asio::co_spawn(
        io_, [self = shared_from_this()] { return self->make_one(); }, boost::asio::detached);
}

boost::asio::awaitable<void> SparePool::make_one() {
    const auto self = shared_from_this();
    auto made = co_await hooks_.make();
    const auto making = std::exchange(making_, nullptr);
    if (made.has_error()) {
        making->set(false);
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
    making->set(true);
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
    if (!making_) {
        co_return false;
    }
    const auto making = making_;
    co_return co_await Completion<bool>::wait(making);
}

void SparePool::stop() {
    stopped_ = true;
    retry_timer_.cancel();
    while (give_way()) {
    }
}

}  // namespace cellkeep::session
