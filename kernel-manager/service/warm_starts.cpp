// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/warm_starts.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

std::shared_ptr<WarmStarts> WarmStarts::create(ByLanguage languages, Hooks hooks) {
    return std::shared_ptr<WarmStarts>(new WarmStarts(std::move(languages), std::move(hooks)));
}

void WarmStarts::begin() {
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
    if (const auto warm = languages_.find(language); warm != languages_.end()) {
        co_await warm->second->wait_until_ready();
    }
}

boost::asio::awaitable<Result<sandbox::Sandbox>> WarmStarts::make_sandbox(
    std::string language, sandbox::Policy policy) {
    const auto self = shared_from_this();
    const auto warm = languages_.find(language);
    ZygotePtr zygote;
    if (warm != languages_.end()) {  // no conditional expression: g++ 12 destroys its result twice
        zygote = co_await warm->second->take();
    }
    if (zygote && zygote->covers(policy)) {
        auto made = co_await hooks_.make_sandbox(policy, zygote);
        if (made.has_value() || stopped_) {
            co_return made;
        }
        hooks_.log(language + ": without the zygote: " + made.error().message());
        auto plain = co_await hooks_.make_sandbox(policy, nullptr);
        if (plain.has_value()) {
            warm->second->fork_failed(zygote);  // the host is not at fault
        }
        co_return plain;
    }
    co_return co_await hooks_.make_sandbox(policy, nullptr);
}

void WarmStarts::note_start(const std::string& language, const ZygotePtr& zygote, bool started) {
    const auto warm = languages_.find(language);
    if (warm == languages_.end() || !zygote || stopped_) {
        return;
    }
    if (started) {
        warm->second->fork_succeeded(zygote);
    } else {
        warm->second->fork_failed(zygote);
    }
}

void WarmStarts::stop() {
    stopped_ = true;
    for (const auto& [language, warm] : languages_) {
        warm->stop();
    }
}

}  // namespace cellkeep::session
