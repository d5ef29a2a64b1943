// SPDX-License-Identifier: Apache-2.0
#include "sandbox/policy/reported_calls.hpp"

#include <seccomp.h>

#include <cstdlib>
#include <memory>

namespace cellkeep::sandbox {

std::string system_call_name(std::uint32_t number) {
    const std::unique_ptr<char, decltype(&std::free)> name(
        seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, static_cast<int>(number)), &std::free);
    return name ? name.get() : "system call " + std::to_string(number);
}

}  // namespace cellkeep::sandbox
