// SPDX-License-Identifier: Apache-2.0
//
// The isolation report: what was really applied, control by control. It is filled in by the code
// that applies each control, never by intention.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::sandbox {

enum class ControlState {
    kApplied,   // in force
    kDegraded,  // a weaker means is in force; detail says which
    kAbsent,    // not in force
};

std::string_view to_string(ControlState state);  // "applied", "degraded", "absent"

/// One control. The names are stable and are what --allow-degraded takes: user_namespace,
/// nested_user_namespaces, pid_namespace, mount_namespace, network_namespace, ipc_namespace,
/// uts_namespace, cgroup_namespace, root_filesystem, proc, capabilities, no_new_privileges,
/// landlock, seccomp, denial_reports, session_keyring, rlimits, memory_limit, process_limit,
/// cpu_limit, cpu_accounting, freeze, kill, private_image.
struct Control {
    std::string name;
    ControlState state = ControlState::kAbsent;
    std::string mechanism;  // "cgroup v1 memory", "Landlock ABI 7", …
    std::string detail;     // why degraded or absent; empty when applied
    std::string fix;        // what an operator can do; empty when applied
};

/// Every name above, in that order.
const std::vector<std::string>& control_names();

struct IsolationReport {
    std::vector<Control> controls;
    bool complete() const;  // every control applied
};

}  // namespace cellkeep::sandbox
