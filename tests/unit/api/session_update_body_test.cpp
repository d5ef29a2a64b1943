// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/session_update_body.hpp"

#include "kernel-manager/service/options_check.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/api/agent_api.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::api::test {
namespace {

const std::string kSession = "/v1/sessions/ses_1";

TEST_CASE("a patch lowers limits, merges metadata and keeps alive", "[agent][update]") {
    Api api;
    session::SessionOptions options;
    options.metadata = {{"task", "T-1"}, {"old", 1}, {"deep", {{"a", 1}}}};
    const auto session = api.backend.add(options);
    const auto answer = api.ask(
        "PATCH",
        kSession,
        R"({"limits":{"wall_ms":1000,"executions":5,"cpu_cores":0.5},"keep_alive":true,
            "metadata":{"task":"T-2","old":null,"deep":{"b":2}}})");
    CHECK(answer.status == 200);
    CHECK(answer.json["limits"]["wall_ms"] == 1000);
    CHECK(answer.json["limits"]["executions"] == 5);
    CHECK(answer.json["limits"]["memory_mb"] == 512);
    CHECK(
        answer.json["metadata"] == nlohmann::json::parse(R"({"task":"T-2","deep":{"a":1,"b":2}})"));
    REQUIRE(session->updates.size() == 1);
    CHECK(session->updates[0].keep_alive);
    CHECK_FALSE(session->updates[0].network.has_value());
}

TEST_CASE("an empty patch changes nothing", "[agent][update]") {
    Api api;
    const auto session = api.backend.add();
    CHECK(api.ask("PATCH", kSession, "{}").status == 200);
    CHECK_FALSE(session->updates[0].limits.has_value());
    CHECK_FALSE(session->updates[0].metadata.has_value());
    CHECK(api.ask("PATCH", kSession, R"({"metadata":null})").json["metadata"].empty());
}

TEST_CASE("both content types mean the same patch, other types are refused", "[agent][update]") {
    Api api;
    api.backend.add();
    for (const auto& [type, status] : std::vector<std::pair<std::string, int>>{
             {"application/json", 200},
             {"application/merge-patch+json", 200},
             {"Application/Merge-Patch+JSON; charset=utf-8", 200},
             {"application/json-patch+json", 415},
             {"text/plain", 415},
             {"", 415}}) {
        CAPTURE(type);
        CHECK(api.ask("PATCH", kSession, "{}", {{"Content-Type", type}}).status == status);
    }
    CHECK(api.ask("PATCH", kSession, "{").status == 400);
    CHECK(api.ask("PATCH", kSession, "").status >= 400);
    CHECK(api.ask("PATCH", "/v1/sessions/ses_9", "{}").status == 404);
}

TEST_CASE("what a patch may not say is refused with its place", "[agent][update]") {
    const auto [body, pointer] = GENERATE(table<const char*, const char*>({
        {R"({"limits":{"wall_ms":30001}})", "/limits/wall_ms"},
        {R"({"limits":{"wall_ms":0}})", "/limits/wall_ms"},
        {R"({"limits":{"wall_ms":null}})", "/limits/wall_ms"},
        {R"({"limits":{"cpu_ms":"1"}})", "/limits/cpu_ms"},
        {R"({"limits":{"memory_mb":513}})", "/limits/memory_mb"},
        {R"({"limits":{"memory_mb":1}})", "/limits/memory_mb"},
        {R"({"limits":{"cpu_cores":1.5}})", "/limits/cpu_cores"},
        {R"({"limits":{"disk_mb":100}})", "/limits/disk_mb"},
        {R"({"limits":{"consecutive_failures":1}})", "/limits/consecutive_failures"},
        {R"({"limits":{"processes":65}})", "/limits/processes"},
        {R"({"limits":{"output_bytes":1}})", "/limits/output_bytes"},
        {R"({"limits":{"artifact_bytes":-1}})", "/limits/artifact_bytes"},
        {R"({"limits":{"idle_s":0}})", "/limits/idle_s"},
        {R"({"limits":{"executions":0}})", "/limits/executions"},
        {R"({"limits":{"total_wall_ms":1.5}})", "/limits/total_wall_ms"},
        {R"({"limits":{"unheard_of":1}})", "/limits/unheard_of"},
        {R"({"limits":[]})", "/limits"},
        {R"({"metadata":[1]})", "/metadata"},
        {R"({"metadata":"x"})", "/metadata"},
        {R"({"keep_alive":1})", "/keep_alive"},
        {R"({"language":"sql"})", "/language"},
        {R"([])", ""},
    }));
    CAPTURE(body);
    Api api;
    const auto session = api.backend.add();
    const auto answer = api.ask("PATCH", kSession, body);
    CHECK(answer.status == 422);
    CHECK(answer.json["errors"][0]["pointer"] == pointer);
    CHECK(session->updates.empty());
}

TEST_CASE("a budget may not be taken away", "[agent][update]") {
    Api api;
    session::SessionOptions options;
    options.limits.executions = 3;
    api.backend.add(options);
    CHECK(api.ask("PATCH", kSession, R"({"limits":{"executions":null}})").status == 422);
    CHECK(api.ask("PATCH", kSession, R"({"limits":{"executions":4}})").status == 422);
    CHECK(api.ask("PATCH", kSession, R"({"limits":{"executions":2}})").status == 200);
    CHECK(api.ask("PATCH", kSession, R"({"limits":{"total_cpu_ms":null}})").status == 200);
}

TEST_CASE("where nothing is in force, a time is at most what a clock can hold", "[agent][update]") {
    Api api;
    session::SessionOptions options;
    options.limits.idle = std::chrono::seconds(0);
    options.limits.lifetime = std::chrono::seconds(0);
    api.backend.add(options);
    const auto [name, most] = GENERATE(table<std::string, std::int64_t>({
        {"total_wall_ms", session::kLimitTimeMax.count()},
        {"total_cpu_ms", session::kLimitTimeMax.count()},
        {"idle_s", session::kLimitTimeMax.count() / 1000},
        {"lifetime_s", session::kLimitTimeMax.count() / 1000},
    }));
    CAPTURE(name);
    // As a capture of its own: clang 14 lets no lambda refer to a structured binding.
    const auto asked = [&, limit = name](std::int64_t value) {
        const nlohmann::json body = {{"limits", {{limit, value}}}};
        return api.ask("PATCH", kSession, body.dump()).status;
    };
    CHECK(asked(INT64_MAX) == 422);
    CHECK(asked(most + 1) == 422);
    CHECK(asked(most) == 200);
}

TEST_CASE("metadata has its bound after the patch, too", "[agent][update]") {
    Api api;
    session::SessionOptions options;
    options.metadata = {{"a", std::string(limits::kMetadataBytesMax - 30, 'x')}};
    api.backend.add(options);
    CHECK(api.ask("PATCH", kSession, R"({"metadata":{"b":"1"}})").status == 200);
    CHECK(api.ask("PATCH", kSession, R"({"metadata":{"c":"01234567890123456789"}})").status == 422);
}

TEST_CASE("what the session refuses points at the field", "[agent][update]") {
    Api api;
    const auto session = api.backend.add();
    session->failure = Error::in_field(
        ErrorCode::kInvalidArgument, "limits/memory_mb", "cannot be lowered now: too much");
    const auto answer = api.ask("PATCH", kSession, R"({"limits":{"memory_mb":100}})");
    CHECK(answer.status == 422);
    CHECK(answer.json["errors"][0]["pointer"] == "/limits/memory_mb");
    CHECK(answer.json["errors"][0]["message"] == "cannot be lowered now: too much");
    session->failure = Error(ErrorCode::kConflict, "update: no network");
    CHECK(api.ask("PATCH", kSession, R"({"keep_alive":true})").status == 409);
    CHECK(refused_field(Error(ErrorCode::kInvalidArgument, "no place: x")).errors.empty());
    CHECK(refused_field(Error(ErrorCode::kInvalidArgument, "nothing")).errors.empty());
}

}  // namespace
}  // namespace cellkeep::api::test
