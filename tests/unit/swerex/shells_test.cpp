// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/swerex/shells.hpp"

#include "kernel-manager/swerex/limits.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <string>

namespace cellkeep::swerex {
namespace {

TEST_CASE(
    "a session has kShellsMax shells, also of those that are being started", "[swerex][shells]") {
    Shells shells;
    for (std::size_t i = 0; i < kShellsMax; ++i) {
        CHECK(shells.claim("ses_1", std::to_string(i)));
    }
    CHECK_FALSE(shells.claim("ses_1", "one more"));
    CHECK(shells.claim("ses_2", "one more"));
    CHECK_FALSE(shells.claim("ses_2", "one more"));
    // A claim is no shell yet.
    CHECK(shells.find("ses_1", "0") == nullptr);
    CHECK(shells.find("ses_3", "0") == nullptr);
    CHECK(shells.has_any("ses_1"));
    CHECK_FALSE(shells.has_any("ses_3"));
    CHECK(shells.is_any_busy("ses_1"));
    CHECK_FALSE(shells.is_any_busy("ses_3"));
    shells.forget("ses_1", "0");
    CHECK(shells.claim("ses_1", "one more"));
    shells.forget_session("ses_1");
    CHECK_FALSE(shells.has_any("ses_1"));
    CHECK(shells.claim("ses_1", "0"));
    shells.forget("ses_1", "0");
    CHECK_FALSE(shells.has_any("ses_1"));
    shells.forget("ses_3", "0");
}

TEST_CASE("a shell of a session that has ended is not kept", "[swerex][shells]") {
    Shells shells;
    CHECK(shells.claim("ses_1", "a"));
    shells.forget_session("ses_1");
    shells.keep("ses_1", "a", nullptr);
    CHECK(shells.find("ses_1", "a") == nullptr);
    CHECK(shells.claim("ses_1", "a"));
}

}  // namespace
}  // namespace cellkeep::swerex
