// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/warm_starts.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

std::shared_ptr<WarmStarts> WarmStarts::create(Kernels kernels, Hooks hooks) {
    return std::shared_ptr<WarmStarts>(new WarmStarts(std::move(kernels), std::move(hooks)));
}

std::shared_ptr<WarmStart> WarmStarts::find(const std::string& kernel) const {
    if (const auto found = kernels_.at_once.find(kernel); found != kernels_.at_once.end()) {
        return found->second;
    }
    const auto found = demanded_.find(kernel);
    return found == demanded_.end() ? nullptr : found->second.start;
}

std::shared_ptr<WarmStart> WarmStarts::find_or_begin(const std::string& kernel) {
    const auto make = kernels_.on_demand.find(kernel);
    if (make == kernels_.on_demand.end() || !begun_ || stopped_) {
        return find(kernel);
    }
    auto found = demanded_.find(kernel);
    if (found == demanded_.end()) {
        if (demanded_.size() >= kWarmEnvironmentsMax && !retire_longest_unused()) {
            return nullptr;
        }
        const auto start = make->second();
        if (!start) {
            return nullptr;
        }
        start->begin();
        found = demanded_.emplace(kernel, Demanded{start}).first;
    }
    found->second.last_use = ++uses_;
    return found->second.start;
}

bool WarmStarts::retire_longest_unused() {
    auto oldest = demanded_.end();
    for (auto one = demanded_.begin(); one != demanded_.end(); ++one) {
        // The end of one that is being made would have to be waited for.
        const bool may_go = one->second.start->ready();
        if (may_go &&
            (oldest == demanded_.end() || one->second.last_use < oldest->second.last_use)) {
            oldest = one;
        }
    }
    if (oldest == demanded_.end()) {
        return false;
    }
    oldest->second.start->retire();
    demanded_.erase(oldest);
    return true;
}

void WarmStarts::replace(Kernels kernels) {
    for (const auto& [kernel, warm] : std::exchange(kernels_, std::move(kernels)).at_once) {
        warm->retire();
    }
    for (const auto& [kernel, demanded] : std::exchange(demanded_, {})) {
        demanded.start->retire();
    }
    if (stopped_) {
        stop();
    } else if (begun_) {
        begin();
    }
}

void WarmStarts::add(const std::string& kernel, OnDemand make) {
    kernels_.on_demand.insert_or_assign(kernel, std::move(make));
}

void WarmStarts::begin() {
    begun_ = true;
    for (const auto& [kernel, warm] : kernels_.at_once) {
        warm->begin();
    }
}

bool WarmStarts::are_ready() const {
    return std::all_of(kernels_.at_once.begin(), kernels_.at_once.end(), [](const auto& one) {
        return one.second->ready();
    });
}

boost::asio::awaitable<void> WarmStarts::wait_until_ready(std::string kernel) {
    const auto self = shared_from_this();
    if (const auto warm = find_or_begin(kernel)) {
        co_await warm->wait_until_ready();
    }
}

boost::asio::awaitable<Result<sandbox::Sandbox>> WarmStarts::make_sandbox(
    std::string kernel, sandbox::Policy policy) {
    const auto self = shared_from_this();
    const auto warm = find_or_begin(kernel);  // replace() may come meanwhile
    ZygotePtr zygote;
    if (warm) {  // no conditional expression: g++ 12 destroys its result twice
        zygote = co_await warm->take();
    }
    if (zygote && zygote->covers(policy)) {
        auto made = co_await hooks_.make_sandbox(policy, zygote);
        if (made.has_value() || stopped_) {
            co_return made;
        }
        hooks_.log(kernel + ": without the zygote: " + made.error().message());
        auto plain = co_await hooks_.make_sandbox(policy, nullptr);
        if (plain.has_value()) {
            warm->fork_failed(zygote);  // the host is not at fault
        }
        co_return plain;
    }
    co_return co_await hooks_.make_sandbox(policy, nullptr);
}

void WarmStarts::note_start(const std::string& kernel, const ZygotePtr& zygote, bool started) {
    const auto warm = find(kernel);
    if (!warm || !zygote || stopped_) {
        return;
    }
    if (started) {
        warm->fork_succeeded(zygote);
    } else {
        warm->fork_failed(zygote);
    }
}

void WarmStarts::stop() {
    stopped_ = true;
    for (const auto& [kernel, warm] : kernels_.at_once) {
        warm->stop();
    }
    for (const auto& [kernel, demanded] : demanded_) {
        demanded.start->stop();
    }
}

}  // namespace cellkeep::session
