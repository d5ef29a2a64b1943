// SPDX-License-Identifier: Apache-2.0
#include "sandbox/policy/host_mode.hpp"

#include "protocol/support/syscall.hpp"

#include <sys/capability.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <sstream>

namespace cellkeep::sandbox {

namespace {

constexpr std::size_t kMapBytesMax = 1UL << 16U;

enum class Place { kInitial, kOther, kUnknown };

/// The initial user namespace maps every id to itself (user_namespaces(7)).
Place user_namespace() {
    const auto map = read_file("/proc/self/uid_map", kMapBytesMax);
    if (map.has_error()) {
        return Place::kUnknown;
    }
    std::istringstream in(map.value());
    std::uint64_t inside = 1;
    std::uint64_t outside = 1;
    std::uint64_t count = 0;
    in >> inside >> outside >> count;
    return inside == 0 && outside == 0 && count == 0xffff'ffffU ? Place::kInitial : Place::kOther;
}

}  // namespace

RunMode run_mode() {
    if (::geteuid() != 0 || user_namespace() != Place::kInitial) {
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

Status check_identity() {
    if (::geteuid() != 0 || user_namespace() == Place::kOther || run_mode() == RunMode::kRoot) {
        return ok();
    }
    return Error(
               ErrorCode::kPermissionDenied,
               "the server is root without the capabilities to give sessions a user of their own")
        .with_hint(
            "give it CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID, or start it as an ordinary "
            "user");
}

}  // namespace cellkeep::sandbox
