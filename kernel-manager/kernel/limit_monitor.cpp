// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/kernel/limit_monitor.hpp"

#include "kernel-manager/limits/death_notice.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <limits>

namespace cellkeep::session {

void LimitMonitor::listen(const SessionLimits& limits, Time now) {
    meter_.begin(limits.output_bytes, now);
}

void LimitMonitor::begin(const sandbox::Usage& usage, const SessionLimits& limits, Time now) {
    account_->see(usage.cpu_time);
    account_->begin_run(now);
    running_ = true;
    began_at_ = now;
    at_begin_ = usage;
    wall_ = {};
    cpu_ = {};
    cut_ = {};
    passed_.reset();
    error_.reset();
    counts_ = {};
    // Its budget is the session's, whose other interpreters talk at the same time.
    output_budget_ = limits.total_output_bytes;
    meter_.begin(limits.output_bytes, now);
}

LimitMonitor::Passed LimitMonitor::pass_on() {
    running_ = false;
    return {
        began_at_,
        at_begin_.cpu_time,
        at_begin_.oom_kills,
        at_begin_.process_refusals,
        std::move(counts_.denials)};
}

void LimitMonitor::go_on(Passed passed, const SessionLimits& limits, Time now) {
    sandbox::Usage usage;
    usage.cpu_time = passed.cpu_at_begin;
    usage.oom_kills = passed.oom_kills_at_begin;
    usage.process_refusals = passed.process_refusals_at_begin;
    begin(usage, limits, passed.began_at);
    meter_.begin(limits.output_bytes, now);
    counts_.denials = std::move(passed.denials);
    if (counts_.denials.size() > limits::kDenialsRememberedMax) {
        counts_.denials.resize(limits::kDenialsRememberedMax);
    }
}

Budgets::Allowance LimitMonitor::wall_time(
    const SessionLimits& limits, std::chrono::milliseconds asked, std::optional<Time> now) {
    const Time then = now.value_or(began_at_);
    const auto own = std::chrono::duration_cast<std::chrono::microseconds>(then - began_at_);
    wall_ = account_->budgets().allow_wall(limits, asked, account_->running_for(then) - own);
    return wall_;
}

Budgets::Allowance LimitMonitor::cpu_time(
    const SessionLimits& limits, std::chrono::microseconds used) {
    cpu_ = account_->budgets().allow_cpu(limits, used);
    return cpu_;
}

bool LimitMonitor::passes_output(std::uint64_t bytes, Time now) {
    if (running_) {
        account_->budgets().add_output(
            bytes);  // not the interpreter's own start, nor what others ask it
    }
    auto passed = meter_.add(bytes, now);
    if (running_ && account_->used().output_bytes >
                        output_budget_.value_or(std::numeric_limits<std::uint64_t>::max())) {
        passed = OutputMeter::Bound::kBudget;
    }
    if (!passed.has_value() || passed_.has_value()) {
        return false;
    }
    passed_ = passed;
    return true;
}

void LimitMonitor::on_denied(const sandbox::Denial& denial) {
    if (!running_) {
        return;
    }
    auto& denials = counts_.denials;
    const auto known = std::find_if(denials.begin(), denials.end(), [&](const auto& one) {
        return one.system_call == denial.system_call;
    });
    if (known != denials.end()) {
        known->count += denial.count;
    } else if (denials.size() < limits::kDenialsRememberedMax) {
        denials.push_back(denial);
    }
}

void LimitMonitor::on_reply(const protocol::Message& reply) {
    if (running_ && !error_.has_value()) {
        error_ = read_error(reply);
    }
}

void LimitMonitor::on_cut(Cut cut) {
    if (!running_ || is_limit(cut_.cut)) {
        return;
    }
    cut_.cut = cut;
    switch (cut) {
        case Cut::kWallTimeout:
            cut_.time = wall_.time;
            cut_.from_budget = wall_.from_budget;
            break;
        case Cut::kCpuTimeout:
            cut_.time = cpu_.time;
            cut_.from_budget = cpu_.from_budget;
            break;
        case Cut::kOutputLimit:
            cut_.bytes = meter_.bytes();
            cut_.messages = meter_.messages();
            cut_.from_budget = passed_ == OutputMeter::Bound::kBudget;
            cut_.by_messages = passed_ == OutputMeter::Bound::kMessages;
            break;
        case Cut::kNone:
        case Cut::kInterrupt:
            break;
    }
}

std::string LimitMonitor::describe_cut(const SessionLimits& limits) const {
    if (!cut_.from_budget && cut_.cut == Cut::kWallTimeout) {
        return describe_wall_deadline(cut_.time);
    }
    if (!cut_.from_budget && cut_.cut == Cut::kCpuTimeout) {
        return describe_cpu_deadline(cut_.time);
    }
    const auto hit = find_limit(cut_, limits);
    return hit.has_value() ? hit->message + " " + hit->hint : std::string();
}

bool LimitMonitor::asks_for_counts(const std::optional<Death>& death) const {
    return running_ && cut_.cut == Cut::kNone && (death.has_value() || has_failed());
}

std::optional<LimitHit> LimitMonitor::end(
    const sandbox::Usage& usage,
    const std::optional<Death>& death,
    const SessionLimits& limits,
    Time now) {
    if (!running_) {
        return std::nullopt;
    }
    running_ = false;
    passed_.reset();
    meter_.begin(limits.output_bytes, now);
    account_->see(usage.cpu_time);
    account_->end_run(began_at_, now);
    counts_.oom_kills = usage.oom_kills - std::min(usage.oom_kills, at_begin_.oom_kills);
    counts_.process_refusals =
        usage.process_refusals - std::min(usage.process_refusals, at_begin_.process_refusals);
    if (cut_.cut != Cut::kNone) {
        return find_limit(cut_, limits);
    }
    if (death.has_value()) {
        return find_limit(*death, counts_, limits);
    }
    return error_.has_value() ? find_limit(*error_, counts_, limits) : std::nullopt;
}

}  // namespace cellkeep::session
