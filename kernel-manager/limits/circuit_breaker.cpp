// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/limits/circuit_breaker.hpp"

#include "protocol/limits.hpp"

#include <algorithm>
#include <string>

namespace cellkeep::session {

std::string_view to_string(CircuitState state) {
    switch (state) {
        case CircuitState::kClosed:
            return "closed";
        case CircuitState::kOpen:
            return "open";
        case CircuitState::kHalfOpen:
            return "half_open";
    }
    return "unknown";
}

CircuitVote vote_of(ExecutionStatus status) {
    switch (status) {
        case ExecutionStatus::kOk:
            return CircuitVote::kSuccess;
        case ExecutionStatus::kInterrupted:
            return CircuitVote::kNone;
        default:
            return CircuitVote::kFailure;
    }
}

CircuitState CircuitBreaker::state(Time now) const {
    if (!open_until_.has_value()) {
        return CircuitState::kClosed;
    }
    return now < *open_until_ ? CircuitState::kOpen : CircuitState::kHalfOpen;
}

CircuitInfo CircuitBreaker::info(Time now) const {
    CircuitInfo info{state(now), failures_, threshold_, std::nullopt};
    if (info.state == CircuitState::kOpen) {
        info.retry_after = std::chrono::ceil<std::chrono::milliseconds>(*open_until_ - now);
    }
    return info;
}

std::optional<LimitRefusal> CircuitBreaker::refusal(Time now) const {
    const CircuitInfo now_is = info(now);
    const bool trying = now_is.state == CircuitState::kHalfOpen && running_ > 0;
    if (now_is.state != CircuitState::kOpen && !trying) {
        return std::nullopt;
    }
    LimitRefusal refusal;
    refusal.kind = LimitRefusal::Kind::kCircuitOpen;
    refusal.budget = "consecutive_failures";
    refusal.used = failures_;
    refusal.limit = threshold_;
    refusal.message = "The last " + std::to_string(failures_) +
                      " executions of this session failed (the circuit breaker opens after " +
                      std::to_string(threshold_) + ")";
    if (trying) {
        refusal.retry_after = std::chrono::seconds(1);
        refusal.message += ", and the one that may try now has not ended.";
    } else {
        refusal.retry_after = now_is.retry_after;
        const auto seconds = std::chrono::ceil<std::chrono::seconds>(*now_is.retry_after).count();
        refusal.message += "; it takes the next one in " + std::to_string(seconds) + " s.";
    }
    refusal.hint =
        "Read the last errors and change the approach before trying again: one execution that "
        "succeeds closes the breaker.";
    return refusal;
}

void CircuitBreaker::open(Time now) {
    cooldown_ = cooldown_.count() == 0
                    ? limits::kBreakerCooldownFirst
                    : std::min<std::chrono::seconds>(2 * cooldown_, limits::kBreakerCooldownMax);
    open_until_ = now + cooldown_;
}

void CircuitBreaker::on_end(CircuitVote vote, Time now) {
    running_ -= std::min(running_, 1U);
    switch (vote) {
        case CircuitVote::kNone:
            return;
        case CircuitVote::kSuccess:
            failures_ = 0;
            cooldown_ = std::chrono::seconds{0};
            open_until_.reset();
            return;
        case CircuitVote::kFailure:
            break;
    }
    if (failures_ < UINT32_MAX) {
        ++failures_;
    }
    // While open only what was accepted before ends: it changes nothing.
    if (threshold_ > 0 && failures_ >= threshold_ && state(now) != CircuitState::kOpen) {
        open(now);
    }
}

}  // namespace cellkeep::session
