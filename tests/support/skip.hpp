// SPDX-License-Identifier: Apache-2.0
//
// Ends a test case that this host cannot run (CTest reports "Skipped"), unless the environment
// variable CELLKEEP_REQUIRE names the feature: then the skip is a failure, so that skipping can
// never hide a broken sandbox on a machine that is known to be able.
#pragma once

namespace cellkeep::test {

[[noreturn]] void skip(const char* feature, const char* reason);

}  // namespace cellkeep::test
