// SPDX-License-Identifier: Apache-2.0
//
// Of sandbox.hpp: what sandboxes leave behind, at a server's start and at its end.
#include "sandbox/cgroup/leftovers.hpp"
#include "sandbox/cgroup/server_cgroup.hpp"
#include "sandbox/sandbox.hpp"

#include <cstddef>
#include <string>

namespace cellkeep::sandbox {

Status sweep_leftovers() {
    (void)clear_leftovers();  // Ignored: what is left is tried again.
    return sweep_cgroups();
}

Status finish_leftovers(std::chrono::milliseconds patience) {
    const std::size_t left = wait_for_leftovers(patience);
    if (left > 0) {
        return Error(
            ErrorCode::kTimeout,
            std::to_string(left) + " sandboxes that were ended are not gone yet",
            "The kernel ends them when it can, and the next server removes their cgroups.");
    }
    return ok();
}

}  // namespace cellkeep::sandbox
