// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/session_update.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session {

namespace {

Error refuse_update(const char* name, const std::string& why) {
    return Error::in_field(ErrorCode::kInvalidArgument, "limits/" + std::string(name), why);
}

template <typename T>
Status check_not_above(const char* name, T now, T wanted) {
    if (wanted <= now) {
        return ok();
    }
    return refuse_update(name, "may only go down: it is " + std::to_string(now));
}

/// 0 is never: more than any time.
Status check_end_goes_down(
    const char* name, std::chrono::seconds now, std::chrono::seconds wanted) {
    if (wanted == now || (wanted.count() > 0 && (now.count() == 0 || wanted < now))) {
        return ok();
    }
    return refuse_update(name, "may only go down: it is " + std::to_string(now.count()));
}

/// Nothing is no bound: more than any number.
template <typename T>
Status check_budget(const char* name, const std::optional<T>& now, const std::optional<T>& wanted) {
    if (!now || (wanted && *wanted <= *now)) {
        return ok();
    }
    return refuse_update(name, "may only go down");
}

}  // namespace

Status check_lowering(const SessionLimits& now, const SessionLimits& wanted) {
    // What the sandbox and the circuit breaker were made with.
    if (wanted.disk_mb != now.disk_mb) {
        return refuse_update("disk_mb", "cannot change while the session lives");
    }
    if (wanted.consecutive_failures != now.consecutive_failures) {
        return refuse_update("consecutive_failures", "cannot change while the session lives");
    }
    BOOST_OUTCOME_TRY(check_not_above("cpu_cores", now.cpu_cores, wanted.cpu_cores));
    BOOST_OUTCOME_TRY(check_not_above("memory_mb", now.memory_mb, wanted.memory_mb));
    BOOST_OUTCOME_TRY(check_not_above("processes", now.processes, wanted.processes));
    BOOST_OUTCOME_TRY(check_not_above("wall_ms", now.wall.count(), wanted.wall.count()));
    BOOST_OUTCOME_TRY(check_not_above("cpu_ms", now.cpu.count(), wanted.cpu.count()));
    BOOST_OUTCOME_TRY(check_not_above("output_bytes", now.output_bytes, wanted.output_bytes));
    BOOST_OUTCOME_TRY(check_not_above("artifact_bytes", now.artifact_bytes, wanted.artifact_bytes));
    BOOST_OUTCOME_TRY(check_end_goes_down("idle_s", now.idle, wanted.idle));
    BOOST_OUTCOME_TRY(check_end_goes_down("lifetime_s", now.lifetime, wanted.lifetime));
    BOOST_OUTCOME_TRY(check_budget("executions", now.executions, wanted.executions));
    BOOST_OUTCOME_TRY(check_budget("total_wall_ms", now.total_wall, wanted.total_wall));
    BOOST_OUTCOME_TRY(check_budget("total_cpu_ms", now.total_cpu, wanted.total_cpu));
    BOOST_OUTCOME_TRY(
        check_budget("total_output_bytes", now.total_output_bytes, wanted.total_output_bytes));
    BOOST_OUTCOME_TRY(check_budget(
        "total_artifact_bytes", now.total_artifact_bytes, wanted.total_artifact_bytes));
    return ok();
}

Status lower_sandbox_limits(
    const SessionLimits& now,
    const SessionLimits& wanted,
    const std::function<Status(const sandbox::LimitsChange&)>& change) {
    struct Step {
        const char* name;
        sandbox::LimitsChange forward;
        sandbox::LimitsChange back;
    };
    const auto memory = [](const SessionLimits& limits) {
        sandbox::LimitsChange one;
        one.memory_bytes = limits.memory_mb << 20U;
        return one;
    };
    const auto processes = [](const SessionLimits& limits) {
        sandbox::LimitsChange one;
        one.processes = limits.processes;
        return one;
    };
    const auto cores = [](const SessionLimits& limits) {
        sandbox::LimitsChange one;
        one.cpu_cores = limits.cpu_cores;
        return one;
    };
    // The one that may be refused first.
    std::vector<Step> steps;
    if (wanted.memory_mb != now.memory_mb) {
        steps.push_back({"memory_mb", memory(wanted), memory(now)});
    }
    if (wanted.processes != now.processes) {
        steps.push_back({"processes", processes(wanted), processes(now)});
    }
    if (wanted.cpu_cores < now.cpu_cores) {
        steps.push_back({"cpu_cores", cores(wanted), cores(now)});
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Status changed = change(steps[i].forward);
        if (changed.has_value()) {
            continue;
        }
        // The one that failed too: it may consist of several. Ignored: what was in force a moment
        // ago is allowed.
        for (std::size_t done = i + 1; done-- > 0;) {
            (void)change(steps[done].back).has_value();
        }
        return refuse_update(steps[i].name, "cannot be lowered now: " + changed.error().message());
    }
    return ok();
}

nlohmann::json merge_patch(nlohmann::json document, const nlohmann::json& patch) {
    document.merge_patch(patch);
    return document;
}

}  // namespace cellkeep::session
