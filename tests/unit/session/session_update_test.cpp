// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/session_update.hpp"

#include <catch2/catch.hpp>

#include <functional>

namespace cellkeep::session {
namespace {

using nlohmann::json;
using Change = std::function<void(SessionLimits&)>;

TEST_CASE("a limit may go down or stay", "[update]") {
    const SessionLimits now;
    CHECK(check_lowering(now, now).has_value());
    SessionLimits wanted = now;
    wanted.wall = std::chrono::milliseconds(1);
    wanted.cpu = std::chrono::milliseconds(1);
    wanted.memory_mb = 64;
    wanted.cpu_cores = 0.5;
    wanted.processes = 4;
    wanted.output_bytes = 256;
    wanted.artifact_bytes = 0;
    wanted.idle = std::chrono::seconds(1);
    wanted.lifetime = std::chrono::seconds(1);
    wanted.executions = 1;
    wanted.total_wall = std::chrono::milliseconds(1);
    wanted.total_cpu = std::chrono::milliseconds(1);
    wanted.total_output_bytes = 1;
    wanted.total_artifact_bytes = 1;
    CHECK(check_lowering(now, wanted).has_value());
}

TEST_CASE("a limit that would go up is refused by its name", "[update]") {
    SessionLimits now;
    now.executions = 5;
    now.total_wall = std::chrono::milliseconds(5);
    now.total_cpu = std::chrono::milliseconds(5);
    now.total_output_bytes = 5;
    now.total_artifact_bytes = 5;
    now.consecutive_failures = 5;
    const auto [name, change] = GENERATE(table<const char*, Change>({
        {"wall_ms", [](SessionLimits& limits) { ++limits.wall; }},
        {"cpu_ms", [](SessionLimits& limits) { ++limits.cpu; }},
        {"memory_mb", [](SessionLimits& limits) { ++limits.memory_mb; }},
        {"cpu_cores", [](SessionLimits& limits) { limits.cpu_cores += 0.5; }},
        {"processes", [](SessionLimits& limits) { ++limits.processes; }},
        {"output_bytes", [](SessionLimits& limits) { ++limits.output_bytes; }},
        {"artifact_bytes", [](SessionLimits& limits) { ++limits.artifact_bytes; }},
        {"disk_mb", [](SessionLimits& limits) { --limits.disk_mb; }},
        {"disk_mb", [](SessionLimits& limits) { ++limits.disk_mb; }},
        {"idle_s", [](SessionLimits& limits) { ++limits.idle; }},
        {"idle_s", [](SessionLimits& limits) { limits.idle = {}; }},
        {"lifetime_s", [](SessionLimits& limits) { limits.lifetime = {}; }},
        {"executions", [](SessionLimits& limits) { limits.executions = 6; }},
        {"executions", [](SessionLimits& limits) { limits.executions.reset(); }},
        {"total_wall_ms", [](SessionLimits& limits) { ++*limits.total_wall; }},
        {"total_cpu_ms", [](SessionLimits& limits) { limits.total_cpu.reset(); }},
        {"total_output_bytes", [](SessionLimits& limits) { ++*limits.total_output_bytes; }},
        {"total_artifact_bytes", [](SessionLimits& limits) { ++*limits.total_artifact_bytes; }},
        {"consecutive_failures", [](SessionLimits& limits) { limits.consecutive_failures = 6; }},
        {"consecutive_failures", [](SessionLimits& limits) { limits.consecutive_failures = 4; }},
    }));
    CAPTURE(name);
    SessionLimits wanted = now;
    change(wanted);
    const Status refused = check_lowering(now, wanted);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
    CHECK(refused.error().message().starts_with("limits/" + std::string(name) + ": "));
}

TEST_CASE("a limit of never may become a time", "[update]") {
    SessionLimits now;
    now.idle = {};
    SessionLimits wanted = now;
    wanted.idle = std::chrono::seconds(100'000);
    CHECK(check_lowering(now, wanted).has_value());
}

TEST_CASE("a merge patch replaces, adds and removes as RFC 7396 says", "[update]") {
    // The examples of its appendix A.
    const auto [document, patch, result] = GENERATE(table<const char*, const char*, const char*>({
        {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
        {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
        {R"({"a":"b"})", R"({"a":null})", R"({})"},
        {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
        {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
        {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
        {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
        {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
        {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
        {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
    }));
    CHECK(merge_patch(json::parse(document), json::parse(patch)) == json::parse(result));
}

}  // namespace
}  // namespace cellkeep::session

TEST_CASE("limits of a sandbox are lowered together or not at all", "[session][update]") {
    using cellkeep::sandbox::LimitsChange;
    cellkeep::session::SessionLimits now;
    cellkeep::session::SessionLimits wanted = now;
    wanted.memory_mb = 100;
    wanted.processes = 10;
    wanted.cpu_cores = 0.5;
    cellkeep::session::SessionLimits in_force = now;
    std::string refused = GENERATE("", "memory_mb", "processes", "cpu_cores");
    CAPTURE(refused);
    const auto change = [&](const LimitsChange& one) -> cellkeep::Status {
        const cellkeep::Error failure(cellkeep::ErrorCode::kUnavailable, "no cgroup");
        if (one.memory_bytes) {
            in_force.memory_mb = *one.memory_bytes >> 20U;
            if (refused == "memory_mb" && in_force.memory_mb == 100) {
                return failure;  // half of it may have happened
            }
        }
        if (one.processes && refused == "processes" && *one.processes == 10) {
            return failure;
        }
        if (one.cpu_cores && refused == "cpu_cores" && *one.cpu_cores < 1) {
            return failure;
        }
        in_force.processes = one.processes.value_or(in_force.processes);
        in_force.cpu_cores = one.cpu_cores.value_or(in_force.cpu_cores);
        return cellkeep::ok();
    };
    const auto lowered = cellkeep::session::lower_sandbox_limits(now, wanted, change);
    const auto& expected = refused.empty() ? wanted : now;
    CHECK(lowered.has_value() == refused.empty());
    CHECK(in_force.memory_mb == expected.memory_mb);
    CHECK(in_force.processes == expected.processes);
    CHECK(in_force.cpu_cores == expected.cpu_cores);
    if (lowered.has_error()) {
        CHECK(lowered.error().code() == cellkeep::ErrorCode::kInvalidArgument);
        CHECK_THAT(
            lowered.error().message(),
            Catch::StartsWith("limits/" + refused + ": cannot be lowered now"));
    }
}
