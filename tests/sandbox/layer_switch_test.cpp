// SPDX-License-Identifier: Apache-2.0
//
// Only a mutant build has a switch for a layer of its wall.
#include "sandbox/shared/layer_switch.hpp"

#include "tests/sandbox/fixture.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>
#include <string>

namespace cellkeep::test {

TEST_CASE("no layer of the wall can be switched off by the environment") {
#if defined(CELLKEEP_MUTANTS)
    WARN("this build is a mutant's: its programs are not a sandbox");
#else
    static_assert(!sandbox::layer_removed("seccomp"));
    for (const char* program : {CELLKEEP_LAUNCHER, "/proc/self/exe"}) {
        std::ifstream in(program, std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(in), {}};
        INFO(program);
        REQUIRE(bytes.size() > 1000);
        // In two parts, so that the test does not find itself.
        CHECK(bytes.find(std::string("CELLKEEP_") + "MUTATION") == std::string::npos);
    }
#endif
}

}  // namespace cellkeep::test
