// SPDX-License-Identifier: Apache-2.0
//
// The seam for taking one layer of the wall away, so that scripts/mutate-sandbox can show which
// test misses it. In every build but one with -DCELLKEEP_MUTANTS=ON the answer is a compile-time
// constant and no program holds a switch (tests/sandbox/layer_switch_test.cpp looks into them).
#pragma once

namespace cellkeep::sandbox {

#if defined(CELLKEEP_MUTANTS)
/// True if the environment variable CELLKEEP_MUTATION names this layer.
bool layer_removed(const char* layer) noexcept;
#else
constexpr bool layer_removed(const char* /*layer*/) noexcept {
    return false;
}
#endif

}  // namespace cellkeep::sandbox
