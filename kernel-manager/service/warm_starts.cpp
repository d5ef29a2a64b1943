// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/warm_starts.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

std::shared_ptr<WarmStarts> WarmStarts::create(ByLanguage languages, Hooks hooks) {
    return std::shared_ptr<WarmStarts>(new WarmStarts(std::move(languages), std::move(hooks)));
}

std::shared_ptr<WarmStart> WarmStarts::find(const std::string& language) const {
    const auto found = languages_.find(language);
    return found == languages_.end() ? nullptr : found->second;
}

void WarmStarts::replace(ByLanguage languages) {
    for (const auto& [language, warm] : std::exchange(languages_, std::move(languages))) {
        warm->retire();
    }
    if (stopped_) {
        stop();
    } else if (begun_) {
        begin();
    }
}

void WarmStarts::begin() {
    begun_ = true;
    for (const auto& [language, warm] : languages_) {
        warm->begin();
    }
}

bool WarmStarts::are_ready() const {
    return std::all_of(
        languages_.begin(), languages_.end(), [](const auto& one) { return one.second->ready(); });
}

boost::asio::awaitable<void> WarmStarts::wait_until_ready(std::string language) {
    const auto self = shared_from_this();
    if (const auto warm = find(language)) {
        co_await warm->wait_until_ready();
    }
}

boost::asio::awaitable<Result<sandbox::Sandbox>> WarmStarts::make_sandbox(
    std::string language, sandbox::Policy policy) {
    const auto self = shared_from_this();
    const auto warm = find(language);  // replace() may come meanwhile
    ZygotePtr zygote;
    if (warm) {  // no conditional expression: g++ 12 destroys its result twice
        zygote = co_await warm->take();
    }
    if (zygote && zygote->covers(policy)) {
        auto made = co_await hooks_.make_sandbox(policy, zygote);
        if (made.has_value() || stopped_) {
            co_return made;
        }
        hooks_.log(language + ": without the zygote: " + made.error().message());
        auto plain = co_await hooks_.make_sandbox(policy, nullptr);
        if (plain.has_value()) {
            warm->fork_failed(zygote);  // the host is not at fault
        }
        co_return plain;
    }
    co_return co_await hooks_.make_sandbox(policy, nullptr);
}

void WarmStarts::note_start(const std::string& language, const ZygotePtr& zygote, bool started) {
    const auto warm = find(language);
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
    for (const auto& [language, warm] : languages_) {
        warm->stop();
    }
}

}  // namespace cellkeep::session
