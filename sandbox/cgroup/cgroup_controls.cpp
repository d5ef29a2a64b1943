// SPDX-License-Identifier: Apache-2.0
//
// What the isolation report says of a session's control groups.
#include "sandbox/cgroup/cgroup.hpp"
#include "sandbox/policy/host_mode.hpp"
#include "sandbox/shared/layer_switch.hpp"

#include <unistd.h>

#include <string>
#include <utility>

namespace cellkeep::sandbox {

void SessionCgroup::describe_controls() {
    const std::string fix = run_mode() == RunMode::kRoot
                                ? "make the cgroup file system writable for the server"
                                : "start the server in a delegated cgroup (systemd-run --user "
                                  "--scope -p Delegate=yes …), with cpu among the controllers that "
                                  "user@.service delegates, or as root";
    const auto add = [&](const char* name, bool applied, const char* mechanism) {
        applied = applied || layer_removed(name);  // A mutant claims what it has not.
        Control control{
            name, applied ? ControlState::kApplied : ControlState::kAbsent, mechanism, {}, {}};
        if (!applied) {
            const auto failure = failures_.find(name);
            control.mechanism.clear();
            control.detail = failure != failures_.end()
                                 ? failure->second
                                 : "no cgroup controller for it where the server runs";
            control.fix = fix;
        }
        controls_.push_back(std::move(control));
    };
    add("memory_limit", !memory_.empty(), memory_v2_ ? "cgroup v2 memory" : "cgroup v1 memory");
    if (uncounted_.what != nullptr && !memory_.empty()) {
        controls_.back().state = ControlState::kDegraded;
        controls_.back().detail = uncounted_.what;
        controls_.back().fix = uncounted_.fix;
    }
    add("process_limit", !pids_.empty(), pids_v2_ ? "cgroup v2 pids" : "cgroup v1 pids");
    add("cpu_limit", !cpu_.empty(), cpu_v2_ ? "cgroup v2 cpu" : "cgroup v1 cpu");
    const bool v2_stat = cpuacct_.empty() && !unified_.empty();
    add("cpu_accounting",
        v2_stat || !cpuacct_.empty(),
        v2_stat ? "cgroup v2 cpu.stat" : "cgroup v1 cpuacct");
    const bool v2_freeze =
        !unified_.empty() && ::access((unified_ + "/cgroup.freeze").c_str(), F_OK) == 0;
    add("freeze",
        v2_freeze || !freezer_.empty(),
        v2_freeze ? "cgroup v2 freeze" : "cgroup v1 freezer");
}

}  // namespace cellkeep::sandbox
