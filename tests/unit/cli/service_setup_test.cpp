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

TEST_CASE("what sessions run from meanwhile is one of three words", "[cli][service_setup]") {
    CHECK(parse_while_preparing("wait").value() == WhilePreparing::kWait);
    CHECK(parse_while_preparing("stale").value() == WhilePreparing::kStale);
    CHECK(parse_while_preparing("host").value() == WhilePreparing::kHost);
    for (const char* text : {"", "Wait", "refuse", "stale,host", "host "}) {
        CAPTURE(text);
        REQUIRE(parse_while_preparing(text).has_error());
        CHECK(parse_while_preparing(text).error().code() == ErrorCode::kInvalidArgument);
    }
}

TEST_CASE("the host's files are no substitute that was not accepted", "[cli][service_setup]") {
    ServiceRequest request;
    request.while_preparing = WhilePreparing::kHost;
    request.allow_degraded = {"seccomp"};
    const auto start = begin_service(request);
    REQUIRE(start.has_error());
    CHECK(start.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(start.error().hint(), Catch::Matchers::Contains("--allow-degraded=private_image"));
}

}  // namespace
}  // namespace cellkeep::cli
