// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/service_setup.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::cli {
namespace {

TEST_CASE("an unknown control cannot be allowed to be missing", "[cli][service_setup]") {
    for (const char* name : {"", "Seccomp", "seccomp ", "firewall", "*"}) {
        CAPTURE(name);
        const auto config = make_service_config(1, {name});
        REQUIRE(config.has_error());
        CHECK(config.error().code() == ErrorCode::kInvalidArgument);
        CHECK_THAT(config.error().message(), Catch::Matchers::Contains("--allow-degraded"));
    }
}

}  // namespace
}  // namespace cellkeep::cli
