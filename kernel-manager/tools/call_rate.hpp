// SPDX-License-Identifier: Apache-2.0
//
// How fast each session may call the operator's tools: kSessionCallsBurst at once, and
// kSessionCallsPerSecond more, for which they wait in turn. Remembers only sessions that have
// called of late. Not thread-safe.
#pragma once

#include "kernel-manager/tools/limits.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace cellkeep::tools {

class CallRate {
 public:
    using Time = std::chrono::steady_clock::time_point;

    /// How long the call has to wait, 0 for one that may begin now; nullopt: too many wait
    /// already. Counts the call unless it is refused.
    std::optional<std::chrono::milliseconds> admit(const std::string& session, Time now) {
        forget_full(now);
        Account& account = accounts_.try_emplace(session, Account{kBurst, now}).first->second;
        account.calls = calls_of(account, now);
        account.since = now;
        if (account.calls < 1 - kWaiting) {
            return std::nullopt;
        }
        account.calls -= 1;
        const std::chrono::duration<double> wait(-account.calls / kSessionCallsPerSecond);
        return std::max(
            std::chrono::milliseconds(0), std::chrono::ceil<std::chrono::milliseconds>(wait));
    }
    std::size_t size() const { return accounts_.size(); }

 private:
    struct Account {
        double calls = 0;  // that it may still begin; below 0: so many wait
        Time since;
    };
    static constexpr double kBurst = kSessionCallsBurst;
    static constexpr double kWaiting = kSessionCallsWaitingMax;

    static double calls_of(const Account& account, Time now) {
        const std::chrono::duration<double> passed = now - account.since;
        return std::min(kBurst, account.calls + passed.count() * kSessionCallsPerSecond);
    }
    /// Now and then: who may call as often as a new one needs no account.
    void forget_full(Time now) {
        if (now - swept_ < std::chrono::seconds(1)) {
            return;
        }
        swept_ = now;
        std::erase_if(
            accounts_, [now](const auto& one) { return calls_of(one.second, now) >= kBurst; });
    }

    std::map<std::string, Account> accounts_;
    Time swept_{};
};

}  // namespace cellkeep::tools
