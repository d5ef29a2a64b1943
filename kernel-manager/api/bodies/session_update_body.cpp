// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/session_update_body.hpp"

#include "kernel-manager/api/answers/file_answers.hpp"
#include "kernel-manager/api/bodies/network_body.hpp"
#include "kernel-manager/service/options_check.hpp"
#include "protocol/json.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace cellkeep::api {

namespace {

constexpr std::string_view kInForce = "what is in force; a limit may only go down";

std::uint64_t count_of(std::uint64_t value) {
    return value;
}

template <typename Rep, typename Period>
std::uint64_t count_of(std::chrono::duration<Rep, Period> value) {
    return static_cast<std::uint64_t>(value.count());
}

class LimitsPatch {
 public:
    LimitsPatch(ObjectReader& reader, session::SessionLimits& limits)
        : reader_(reader), limits_(limits) {}

    void read() {
        if (const auto cores =
                reader_.number("cpu_cores", session::kCpuCoresMin, limits_.cpu_cores)) {
            limits_.cpu_cores = *cores;
        }
        for (const char* fixed : {"disk_mb", "consecutive_failures"}) {
            if (reader_.any(fixed) != nullptr) {
                reader_.fail(fixed, "cannot change while the session lives");
            }
        }
        lower("memory_mb", limits_.memory_mb, session::kMemoryMbMin);
        lower("processes", limits_.processes, session::kProcessesMin);
        lower("output_bytes", limits_.output_bytes, session::kOutputBytesMin);
        lower("artifact_bytes", limits_.artifact_bytes, 0);
        lower("wall_ms", limits_.wall, 1);
        lower("cpu_ms", limits_.cpu, 1);
        lower_end("idle_s", limits_.idle);
        lower_end("lifetime_s", limits_.lifetime);
        lower_budget("executions", limits_.executions);
        lower_budget("total_wall_ms", limits_.total_wall);
        lower_budget("total_cpu_ms", limits_.total_cpu);
        lower_budget("total_output_bytes", limits_.total_output_bytes);
        lower_budget("total_artifact_bytes", limits_.total_artifact_bytes);
    }

 private:
    template <typename T>
    void lower(const char* name, T& limit, std::uint64_t minimum) {
        // What is in force may be below what a new session may ask for.
        const std::uint64_t now = count_of(limit);
        if (const auto wanted = reader_.integer(name, {std::min(minimum, now), now, kInForce})) {
            limit = static_cast<T>(*wanted);
        }
    }

    /// 0 is never, and more than any other time.
    void lower_end(const char* name, std::chrono::seconds& limit) {
        const std::uint64_t most =
            limit.count() == 0
                ? count_of(std::chrono::duration_cast<std::chrono::seconds>(session::kLimitTimeMax))
                : count_of(limit);
        if (const auto wanted =
                reader_.integer(name, {limit.count() == 0 ? 0U : 1U, most, kInForce})) {
            limit = std::chrono::seconds(static_cast<std::int64_t>(*wanted));
        }
    }

    /// Nothing is none, and more than any number.
    template <typename T>
    void lower_budget(const char* name, std::optional<T>& limit) {
        constexpr std::uint64_t kMost =
            std::is_same_v<T, std::uint64_t>
                ? UINT64_MAX
                : static_cast<std::uint64_t>(session::kLimitTimeMax.count());
        const nlohmann::json* value = reader_.any(name);
        if (value == nullptr || (value->is_null() && !limit)) {
            return;
        }
        if (value->is_null()) {
            reader_.fail(name, "may only go down, and null is no bound");
            return;
        }
        const std::uint64_t most = limit ? count_of(*limit) : kMost;
        if (const auto wanted = reader_.integer(name, {1, most, kInForce})) {
            limit = T(static_cast<std::conditional_t<
                          std::is_same_v<T, std::uint64_t>,
                          std::uint64_t,
                          std::int64_t>>(*wanted));
        }
    }

    ObjectReader& reader_;
    session::SessionLimits& limits_;
};

std::optional<session::SessionLimits> read_limits_patch(
    ObjectReader& parent, const session::SessionLimits& now, FieldErrors& errors) {
    const nlohmann::json* value = parent.object("limits");
    if (value == nullptr) {
        return std::nullopt;
    }
    session::SessionLimits limits = now;
    ObjectReader reader(*value, child_pointer(parent.pointer(), "limits"), errors);
    LimitsPatch(reader, limits).read();
    reader.finish();
    return limits;
}

std::optional<nlohmann::json> read_metadata_patch(ObjectReader& parent, const nlohmann::json& now) {
    const nlohmann::json* patch = parent.any("metadata");
    if (patch == nullptr) {
        return std::nullopt;
    }
    // null takes the member away: there is always metadata, so that is none in it.
    nlohmann::json metadata =
        patch->is_null() ? nlohmann::json::object() : session::merge_patch(now, *patch);
    if (!metadata.is_object()) {
        parent.fail("metadata", "must be an object or null");
        return std::nullopt;
    }
    if (protocol::dump_json(metadata).size() > limits::kMetadataBytesMax) {
        parent.fail(
            "metadata",
            "must be at most " + std::to_string(limits::kMetadataBytesMax) +
                " bytes as JSON when patched");
        return std::nullopt;
    }
    return metadata;
}

}  // namespace

session::SessionUpdate parse_session_update(
    const nlohmann::json& body, const session::SessionInfo& now, FieldErrors& errors) {
    session::SessionUpdate update;
    ObjectReader reader(body, "", errors);
    update.limits = read_limits_patch(reader, now.limits, errors);
    update.network = read_network_update(reader, now.network, errors);
    update.metadata = read_metadata_patch(reader, now.metadata);
    update.keep_alive = reader.boolean("keep_alive").value_or(false);
    reader.finish();
    return update;
}

http::Problem refused_field(const Error& error) {
    if (auto problem = find_file_problem(error)) {
        return std::move(*problem);
    }
    http::Problem problem = http::problem_from(error);
    if (error.code() == ErrorCode::kUnavailable && error.field() == "environment") {
        problem.kind = "preparing";
        problem.title = "The environment is not there yet";
    }
    if (error.code() == ErrorCode::kInvalidArgument && !error.field().empty()) {
        problem.errors.push_back({"/" + error.field(), std::string(error.reason())});
    }
    return problem;
}

}  // namespace cellkeep::api
