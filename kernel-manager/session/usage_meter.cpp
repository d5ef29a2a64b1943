// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/usage_meter.hpp"

#include <utility>

namespace cellkeep::session {

using std::chrono::microseconds;

UsageMeter::UsageMeter(
    Source source, const SessionAccount& account, const SessionLimits& limits, Log log)
    : source_(std::move(source)), account_(account), limits_(limits), log_(std::move(log)) {}

sandbox::Usage UsageMeter::counters(Time now) {
    const auto counted = source_.counters();
    if (counted.has_error()) {
        return {};
    }
    seen_ = counted.value();
    seen_.cpu_time = see_session(counted.value());
    all_seen_at_ = cpu_seen_at_ = now;
    return seen_;
}

microseconds UsageMeter::cpu_time(Time now) {
    const auto counted = source_.cpu_counter();
    if (counted.has_error()) {
        return microseconds{0};
    }
    seen_.cpu_time = see_session(counted.value());
    cpu_seen_at_ = now;
    return seen_.cpu_time;
}

sandbox::Usage UsageMeter::recent_counters(Time now) {
    const bool fresh = all_seen_at_.has_value() && now - *all_seen_at_ <= kCountersFresh &&
                       now - *cpu_seen_at_ <= kCountersFresh;
    return fresh ? seen_ : counters(now);
}

microseconds UsageMeter::see_session(const sandbox::Usage& counted) {
    return see(clock_, counted.cpu_lost ? std::nullopt : std::optional(counted.cpu_time));
}

std::optional<microseconds> UsageMeter::cpu_time(sandbox::WorkerGroup group) {
    const auto counted = source_.cpu_time(group);
    if (counted.has_value()) {
        return see(group_clocks_[group], counted.value());
    }
    if (counted.error().code() != ErrorCode::kSystem) {
        return std::nullopt;
    }
    return see(group_clocks_[group], std::nullopt);
}

microseconds UsageMeter::see(CpuClock& clock, std::optional<microseconds> counted) {
    const bool estimated = clock.estimates();
    // What runs between runs, in the background, has no deadline.
    const double processors = account_.runs() > 0 ? limits_.cpu_cores : 0.0;
    const auto time = clock.see(counted, processors, std::chrono::steady_clock::now());
    if (clock.estimates() != estimated && log_) {
        log_(
            estimated ? "its CPU time can be read again"
                      : "its CPU time cannot be read. Until it can, a run counts as using all "
                        "processors of the session, so that its CPU deadline comes at the latest");
    }
    return time;
}

}  // namespace cellkeep::session
