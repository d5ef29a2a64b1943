// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/session_commons.hpp"

#include "protocol/limits.hpp"

#include <utility>

namespace cellkeep::session {

SessionCommons::SessionCommons(
    boost::asio::io_context& context, SessionSetup how, sandbox::Sandbox made)
    : io(context),
      setup(std::move(how)),
      sandbox(std::move(made)),
      workspace(sandbox),
      account(setup.options.limits.consecutive_failures.value_or(0)),
      journal(limits::kJournalMessagesMax, limits::kJournalBytesMax) {}

sandbox::Usage SessionCommons::counters() {
    const auto counted = sandbox.counters();
    if (counted.has_error()) {
        return {};
    }
    sandbox::Usage usage = counted.value();
    usage.cpu_time = see_cpu(
        cpu_clock_, usage.cpu_lost ? std::nullopt : std::optional(counted.value().cpu_time));
    return usage;
}

std::optional<std::chrono::microseconds> SessionCommons::cpu_time(sandbox::WorkerGroup group) {
    const auto counted = sandbox.cpu_time(group);
    if (counted.has_value()) {
        return see_cpu(group_clocks_[group], counted.value());
    }
    if (counted.error().code() != ErrorCode::kSystem) {
        return std::nullopt;
    }
    return see_cpu(group_clocks_[group], std::nullopt);
}

std::chrono::microseconds SessionCommons::see_cpu(
    CpuClock& clock, std::optional<std::chrono::microseconds> counted) {
    const bool estimated = clock.estimates();
    // What runs between runs, in the background, has no deadline.
    const double processors = account.runs() > 0 ? limits().cpu_cores : 0.0;
    const auto time = clock.see(counted, processors, std::chrono::steady_clock::now());
    if (clock.estimates() != estimated && setup.log) {
        setup.log(
            "session " + setup.id +
            (estimated
                 ? ": its CPU time can be read again"
                 : ": its CPU time cannot be read. Until it can, a run counts as using all "
                   "processors of the session, so that its CPU deadline comes at the latest"));
    }
    return time;
}

}  // namespace cellkeep::session
