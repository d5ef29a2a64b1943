// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/oom_order.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/server/idle_probe.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace cellkeep::sandbox {

namespace {

/// Lower than this server's own it cannot be made without a capability.
std::string sleeping_value() {
    const auto own = read_file("/proc/self/oom_score_adj", 64);
    const long value = own.has_value() ? std::strtol(own.value().c_str(), nullptr, 10) : 0;
    return std::to_string(std::max(value, 0L));
}

}  // namespace

Status set_oom_place(int pidfd, OomPlace place) {
    BOOST_OUTCOME_TRY(const pid_t pid, pid_of(pidfd));
    BOOST_OUTCOME_TRY(
        const UniqueFd file,
        open_file("/proc/" + std::to_string(pid) + "/oom_score_adj", O_WRONLY));
    // It was that process's file if the process still has the number now.
    BOOST_OUTCOME_TRY(pid_of(pidfd));
    return write_all(
        file.get(), std::string_view(place == OomPlace::kRunning ? "1000" : sleeping_value()));
}

}  // namespace cellkeep::sandbox
