// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/death.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <set>
#include <string>

namespace cellkeep::session {

TEST_CASE("every death has its own stable name and a sentence of its own", "[execution][death]") {
    using Kind = Death::Kind;
    std::set<std::string> names;
    std::set<std::string> sentences;
    for (const Kind kind :
         {Kind::kExited,
          Kind::kSignal,
          Kind::kOom,
          Kind::kWallTimeout,
          Kind::kCpuTimeout,
          Kind::kCulled,
          Kind::kRequested,
          Kind::kStartFailed,
          Kind::kSandboxDied,
          Kind::kLinkBroken}) {
        names.insert(to_string(Death{kind, 3}));
        sentences.insert(describe(Death{kind, 3}));
        CHECK(describe(Death{kind, 3}).back() == '.');
    }
    CHECK(names.size() == 10);
    CHECK(sentences.size() == 10);
    CHECK(to_string(Death{Kind::kSignal, SIGSEGV}) == "signal(11)");
    CHECK(to_string(Death{Kind::kExited, 3}) == "exited(3)");
    CHECK_THAT(describe(Death{Kind::kSignal, SIGSEGV}), Catch::Contains("segmentation fault"));
}

}  // namespace cellkeep::session
