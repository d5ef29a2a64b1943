// SPDX-License-Identifier: Apache-2.0
#define CATCH_CONFIG_RUNNER
#include "tests/support/skip.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cellkeep::test {

void skip(const char* feature, const char* reason) {
    const char* required = std::getenv("CELLKEEP_REQUIRE");
    if (required != nullptr && std::strstr(required, feature) != nullptr) {
        (void)std::fprintf(
            stderr, "required on this machine, yet skipped: %s: %s\n", feature, reason);
        std::_Exit(1);
    }
    (void)std::fprintf(stderr, "skipped: %s: %s\n", feature, reason);
    std::_Exit(77);
}

}  // namespace cellkeep::test

int main(int argc, char** argv) {
    // As the product's programs do: a peer that closes is an error code, never a signal.
    (void)std::signal(SIGPIPE, SIG_IGN);
    return Catch::Session().run(argc, argv);
}
