// SPDX-License-Identifier: Apache-2.0
#include "sandbox/host_mode.hpp"

#include <sys/capability.h>
#include <unistd.h>

#include <memory>

namespace cellkeep::sandbox {

RunMode run_mode() {
    if (::geteuid() != 0) {
        return RunMode::kRootless;
    }
    const std::unique_ptr<void, int (*)(void*)> capabilities(::cap_get_proc(), &::cap_free);
    if (!capabilities) {
        return RunMode::kRootless;
    }
    for (const cap_value_t needed : {CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID}) {
        cap_flag_value_t value = CAP_CLEAR;
        if (::cap_get_flag(static_cast<cap_t>(capabilities.get()), needed, CAP_EFFECTIVE, &value) <
                0 ||
            value != CAP_SET) {
            return RunMode::kRootless;
        }
    }
    return RunMode::kRoot;
}

}  // namespace cellkeep::sandbox
