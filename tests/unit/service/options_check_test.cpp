// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/options_check.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <string>

using cellkeep::ErrorCode;
using cellkeep::Status;
using cellkeep::session::check_environment_variables;
using cellkeep::session::check_kernel_id;
using cellkeep::session::check_limits;
using cellkeep::session::check_working_directory;
using cellkeep::session::LimitCeilings;
using cellkeep::session::SessionLimits;
using namespace std::chrono_literals;
namespace bounds = cellkeep::limits;

namespace {

void check_refused(const Status& status, const char* field) {
    REQUIRE(status.has_error());
    CHECK(status.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(status.error().message(), Catch::Contains(field));
}

}  // namespace

TEST_CASE("a kernel id is a UUID or nothing", "[session][options]") {
    CHECK(check_kernel_id("").has_value());
    CHECK(check_kernel_id("0b9d4f0e-6f0e-4a39-9f6c-1f2e3d4c5b6a").has_value());
    CHECK(check_kernel_id("0B9D4F0E-6F0E-4A39-9F6C-1F2E3D4C5B6A").has_value());
    for (const char* wrong :
         {"x",
          "0b9d4f0e-6f0e-4a39-9f6c-1f2e3d4c5b6",
          "0b9d4f0e-6f0e-4a39-9f6c-1f2e3d4c5b6aa",
          "0b9d4f0e6f0e4a399f6c1f2e3d4c5b6a0000",
          "0b9d4f0e-6f0e-4a39-9f6c-1f2e3d4c5b6g",
          "0b9d4f0e-6f0e-4a39-9f6c_1f2e3d4c5b6a",
          "../../../../../../../../etc/passwd00",
          "{b9d4f0e-6f0e-4a39-9f6c-1f2e3d4c5b6}"}) {
        INFO(wrong);
        check_refused(check_kernel_id(wrong), "kernel_id");
    }
}

TEST_CASE("variables are bounded in number, size and spelling", "[session][options]") {
    std::map<std::string, std::string> env;
    for (std::size_t i = 0; i < bounds::kEnvironmentVariablesMax; ++i) {
        env.emplace("V" + std::to_string(i), "");
    }
    CHECK(check_environment_variables(env).has_value());
    env.emplace("ONE_MORE", "");
    check_refused(check_environment_variables(env), "env");

    // As "V=…" and its NUL.
    CHECK(check_environment_variables({{"V", std::string(bounds::kEnvironmentBytesMax - 3, 'x')}})
              .has_value());
    check_refused(
        check_environment_variables({{"V", std::string(bounds::kEnvironmentBytesMax - 2, 'x')}}),
        "env");

    for (const char* wrong : {"", "1A", "A=B", "A B", "Ä", "A-B"}) {
        INFO(wrong);
        check_refused(check_environment_variables({{wrong, "x"}}), "env");
    }
    check_refused(check_environment_variables({{"A", std::string("x\0y", 3)}}), "env/A");
}

TEST_CASE("budgets are at least one, and the breaker has a ceiling", "[session][options]") {
    SessionLimits limits;
    const LimitCeilings most;
    CHECK(check_limits(limits, most).has_value());
    limits.consecutive_failures = most.consecutive_failures;
    CHECK(check_limits(limits, most).has_value());
    limits.consecutive_failures = most.consecutive_failures + 1;
    check_refused(check_limits(limits, most), "limits/consecutive_failures");
    limits = {};
    limits.total_wall = std::chrono::milliseconds(0);
    check_refused(check_limits(limits, most), "limits/total_wall_ms");
    limits = {};
    limits.total_cpu = std::chrono::milliseconds(-1);
    check_refused(check_limits(limits, most), "limits/total_cpu_ms");
    limits = {};
    limits.total_output_bytes = 0;
    check_refused(check_limits(limits, most), "limits/total_output_bytes");
    limits = {};
    limits.total_artifact_bytes = 0;
    check_refused(check_limits(limits, most), "limits/total_artifact_bytes");
}

TEST_CASE("a working directory stays below the workspace", "[session][options]") {
    CHECK(check_working_directory("").has_value());
    CHECK(check_working_directory("a/b c/d").has_value());
    for (const char* wrong : {"/", "/tmp", "..", "a/../..", "a//b", ".", "a/."}) {
        INFO(wrong);
        check_refused(check_working_directory(wrong), "working_directory");
    }
    check_refused(check_working_directory(std::string("a\0b", 3)), "working_directory");
    check_refused(check_working_directory(std::string(4096, 'x')), "working_directory");
}

TEST_CASE("endless sessions are the operator's to forbid", "[session][options]") {
    SessionLimits asked;
    asked.idle = 0s;
    asked.lifetime = 0s;
    LimitCeilings ceilings;
    CHECK(check_limits(asked, ceilings).has_value());
    ceilings.endless = false;
    check_refused(check_limits(asked, ceilings), "idle_s");
    asked.idle = 1s;
    check_refused(check_limits(asked, ceilings), "lifetime_s");
    asked.lifetime = ceilings.lifetime + 1s;
    check_refused(check_limits(asked, ceilings), "lifetime_s");
    asked.lifetime = -1s;
    check_refused(check_limits(asked, ceilings), "lifetime_s");
}
