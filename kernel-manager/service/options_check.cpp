// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/options_check.hpp"

#include "protocol/limits.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <algorithm>
#include <string_view>

namespace cellkeep::session {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::size_t kUuidLength = 36;

template <typename T>
Status check_range(const char* name, T value, T low, T high) {
    if (value >= low && value <= high) {
        return ok();
    }
    return Error::in_field(
        ErrorCode::kInvalidArgument,
        "limits/" + std::string(name),
        "must be from " + std::to_string(low) + " to " + std::to_string(high));
}

/// Like check_range from one second; 0 means never and is the operator's to forbid.
Status check_end(
    const char* name, std::chrono::seconds asked, std::chrono::seconds most, bool endless_allowed) {
    if (asked.count() == 0 && endless_allowed) {
        return ok();
    }
    return check_range(name, asked.count(), std::chrono::seconds::rep{1}, most.count());
}

}  // namespace

bool is_variable_name(std::string_view name) {
    const auto letter = [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    };
    return !name.empty() && letter(name.front()) &&
           std::all_of(name.begin(), name.end(), [&letter](char c) {
               return letter(c) || (c >= '0' && c <= '9');
           });
}

Status check_limits(const SessionLimits& asked, const LimitCeilings& most) {
    using Ms = std::chrono::milliseconds;
    BOOST_OUTCOME_TRY(check_range("cpu_cores", asked.cpu_cores, kCpuCoresMin, most.cpu_cores));
    BOOST_OUTCOME_TRY(check_range("memory_mb", asked.memory_mb, kMemoryMbMin, most.memory_mb));
    BOOST_OUTCOME_TRY(check_range("disk_mb", asked.disk_mb, kDiskMbMin, most.disk_mb));
    BOOST_OUTCOME_TRY(check_range("processes", asked.processes, kProcessesMin, most.processes));
    BOOST_OUTCOME_TRY(check_range("wall_ms", asked.wall.count(), Ms{1}.count(), most.wall.count()));
    BOOST_OUTCOME_TRY(check_range("cpu_ms", asked.cpu.count(), Ms{1}.count(), most.cpu.count()));
    BOOST_OUTCOME_TRY(
        check_range("output_bytes", asked.output_bytes, kOutputBytesMin, most.output_bytes));
    BOOST_OUTCOME_TRY(
        check_range("artifact_bytes", asked.artifact_bytes, std::uint64_t{0}, most.artifact_bytes));
    constexpr std::uint64_t kAny = UINT64_MAX;
    constexpr std::int64_t kLongest = kLimitTimeMax.count();
    BOOST_OUTCOME_TRY(
        check_range("executions", asked.executions.value_or(1), std::uint64_t{1}, kAny));
    BOOST_OUTCOME_TRY(check_range(
        "total_wall_ms", asked.total_wall.value_or(Ms{1}).count(), Ms{1}.count(), kLongest));
    BOOST_OUTCOME_TRY(check_range(
        "total_cpu_ms", asked.total_cpu.value_or(Ms{1}).count(), Ms{1}.count(), kLongest));
    BOOST_OUTCOME_TRY(check_range(
        "total_output_bytes", asked.total_output_bytes.value_or(1), std::uint64_t{1}, kAny));
    BOOST_OUTCOME_TRY(check_range(
        "total_artifact_bytes", asked.total_artifact_bytes.value_or(1), std::uint64_t{1}, kAny));
    BOOST_OUTCOME_TRY(check_range(
        "consecutive_failures",
        asked.consecutive_failures.value_or(0),
        std::uint32_t{0},
        most.consecutive_failures));
    BOOST_OUTCOME_TRY(check_end("idle_s", asked.idle, most.idle, most.endless));
    return check_end("lifetime_s", asked.lifetime, most.lifetime, most.endless);
}

Status check_kernel_id(const std::string& id) {
    bool valid = id.size() == kUuidLength;
    for (std::size_t i = 0; valid && i < id.size(); ++i) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        valid = dash ? id[i] == '-' : kHexDigits.find(id[i]) != std::string_view::npos;
    }
    if (valid || id.empty()) {
        return ok();
    }
    return Error::in_field(ErrorCode::kInvalidArgument, "kernel_id", "is not a UUID");
}

Status check_environment_variables(const std::map<std::string, std::string>& env) {
    if (env.size() > limits::kEnvironmentVariablesMax) {
        return Error::in_field(
            ErrorCode::kInvalidArgument,
            "env",
            "more than " + std::to_string(limits::kEnvironmentVariablesMax) + " variables");
    }
    std::size_t bytes = 0;
    for (const auto& [name, value] : env) {
        if (!is_variable_name(name)) {
            return Error::in_field(
                ErrorCode::kInvalidArgument,
                "env",
                "a name is not that of an environment variable");
        }
        if (value.find('\0') != std::string::npos) {
            return Error::in_field(ErrorCode::kInvalidArgument, "env/" + name, "contains NUL");
        }
        bytes += name.size() + value.size() + 2;  // as "NAME=value" and its NUL
    }
    if (bytes > limits::kEnvironmentBytesMax) {
        return Error::in_field(
            ErrorCode::kInvalidArgument,
            "env",
            "more than " + std::to_string(limits::kEnvironmentBytesMax) + " bytes");
    }
    return ok();
}

Status check_working_directory(const std::string& path) {
    const auto parsed = sandbox::parse_workspace_path(path);
    if (parsed.has_error()) {
        return Error(parsed.error()).within_field("working_directory");
    }
    return ok();
}

Status check_options(const SessionOptions& options, const LimitCeilings& ceilings) {
    BOOST_OUTCOME_TRY(check_kernel_id(options.kernel_id));
    BOOST_OUTCOME_TRY(check_environment_variables(options.env));
    BOOST_OUTCOME_TRY(check_working_directory(options.working_directory));
    return check_limits(options.limits, ceilings);
}

}  // namespace cellkeep::session
