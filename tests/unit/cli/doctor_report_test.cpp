// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/doctor_report.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace cellkeep::cli {
namespace {

using Catch::Matchers::Contains;

sandbox::HostFeatures make_host(sandbox::ControlState second) {
    sandbox::HostFeatures host;
    host.kernel_release = "6.1";
    host.cgroup_layout = "v2";
    host.controls = {
        {"seccomp", sandbox::ControlState::kApplied, "filter", "", ""},
        {"memory_limit", second, "cgroup", "no delegation", "run as a service"}};
    return host;
}

TEST_CASE("the table is aligned and says what to do about what is missing", "[cli][doctor]") {
    const std::string table = doctor_table(make_host(sandbox::ControlState::kAbsent));
    CHECK_THAT(table, Contains("seccomp       applied  filter\n"));
    CHECK_THAT(table, Contains("memory_limit  absent   cgroup\n"));
    CHECK_THAT(table, Contains("why: no delegation"));
    CHECK_THAT(table, Contains("fix: run as a service"));
    CHECK_THAT(table, Contains("1 not in force"));
}

TEST_CASE("the report says that a complete host is complete", "[cli][doctor]") {
    const auto host = make_host(sandbox::ControlState::kApplied);
    CHECK_THAT(doctor_table(host), Contains("Every control is in force"));
    CHECK_THAT(doctor_table(host), !Contains("fix:"));
    CHECK(nlohmann::json::parse(doctor_json(host))["complete"] == true);
}

TEST_CASE("the JSON report has every control with its fix", "[cli][doctor]") {
    const auto report =
        nlohmann::json::parse(doctor_json(make_host(sandbox::ControlState::kDegraded)));
    CHECK(report["complete"] == false);
    CHECK(report["mode"] == "rootless");
    CHECK(report["controls"].size() == 2);
    CHECK(report["controls"][1]["state"] == "degraded");
    CHECK(report["controls"][1]["fix"] == "run as a service");
}

TEST_CASE("absent languages are listed with what would install them", "[cli][doctor]") {
    const Languages languages{
        {"python"}, {{"cpp", "it has not been built", "Build it."}, {"toy", "it is broken", ""}}};
    const auto host = make_host(sandbox::ControlState::kApplied);
    const std::string table = doctor_table(host, languages);
    CHECK_THAT(table, Contains("Languages: python\n"));
    CHECK_THAT(table, Contains("not offered: cpp: it has not been built. Build it.\n"));
    CHECK_THAT(table, Contains("not offered: toy: it is broken\n"));
    const auto report = nlohmann::json::parse(doctor_json(host, languages));
    CHECK(report["languages"]["not_offered"][0]["hint"] == "Build it.");
    CHECK(report["languages"]["not_offered"][1]["hint"] == "");
}

}  // namespace
}  // namespace cellkeep::cli
