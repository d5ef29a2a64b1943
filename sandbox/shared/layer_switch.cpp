// SPDX-License-Identifier: Apache-2.0
//
// Only in builds with -DCELLKEEP_MUTANTS=ON, which are not for use.
#include "sandbox/shared/layer_switch.hpp"

#include <cstdlib>
#include <cstring>

namespace cellkeep::sandbox {

bool layer_removed(const char* layer) noexcept {
    const char* wanted = std::getenv("CELLKEEP_MUTATION");  // NOLINT(concurrency-mt-unsafe)
    return wanted != nullptr && std::strcmp(wanted, layer) == 0;
}

}  // namespace cellkeep::sandbox
