// SPDX-License-Identifier: Apache-2.0
//
// A sandbox on its way from one program to another in the server's process (execve): its pid 1 goes
// on as the same child, and what the server holds of it are descriptors and values. Whoever lets it
// go closes the control socket, and pid 1 ends with everything inside.
#pragma once

#include "protocol/support/unique_fd.hpp"
#include "sandbox/cgroup/passed_cgroup.hpp"
#include "sandbox/policy/isolation.hpp"

#include <sys/types.h>

#include <cstdint>

namespace cellkeep::sandbox {

struct PassedSandbox {
    UniqueFd pidfd;
    UniqueFd control;
    UniqueFd events;
    UniqueFd workspace;
    PassedCgroup cgroup;
    IsolationReport isolation;
    uid_t file_uid = 0;
    gid_t file_gid = 0;
    std::uint32_t last_worker = 0;
    std::uint32_t last_request = 0;
};

}  // namespace cellkeep::sandbox
