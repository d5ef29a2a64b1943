// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/version.hpp"

#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/run/console.hpp"

namespace cellkeep::cli {

std::string version_text() {
    return CELLKEEP_VERSION;
}

int version() {
    print("cellkeep " + version_text() + "\n");
    return kExitDone;
}

}  // namespace cellkeep::cli
