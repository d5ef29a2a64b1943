// SPDX-License-Identifier: Apache-2.0
//
// What a session's control groups are, for another program that takes the server's place. Values:
// the directories stay where they are, and what is in force in them stays so.
#pragma once

#include "sandbox/cgroup/control_file.hpp"
#include "sandbox/shared/worker_group.hpp"

#include <map>
#include <string>
#include <vector>

namespace cellkeep::sandbox {

/// One control. Without a directory it is not in force.
struct PassedControl {
    std::string directory;
    CgroupVersion version = CgroupVersion::kV2;
};

struct PassedCgroup {
    std::vector<std::string> directories;  // each once, a leaf after its parent
    std::string unified;                   // the session's v2 directory, or empty
    PassedControl memory;
    PassedControl processes;
    PassedControl cpu;
    std::string cpu_quota;
    PassedControl cpu_time;
    PassedControl freezer;
    std::map<WorkerGroup, std::string> leaves;
    bool can_kill = false;
};

}  // namespace cellkeep::sandbox
