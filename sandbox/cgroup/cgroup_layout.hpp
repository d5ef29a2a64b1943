// SPDX-License-Identifier: Apache-2.0
//
// Where this process stands in the host's control groups: which controller is under which
// directory, for cgroup v2, v1 and both at once. Pure functions over the texts of /proc/self/cgroup
// and /proc/self/mountinfo, and one that reads them.
#pragma once

#include "protocol/support/result.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace cellkeep::sandbox {

struct CgroupLayout {
    /// The v2 directory of this process, with or without controllers; empty if v2 is not mounted.
    std::string unified;
    /// Where v2 is mounted; empty if it is not.
    std::string unified_mount;
    /// v1 controller ("memory", "pids", "cpu", "cpuacct", "freezer" …) to the directory of this
    /// process.
    std::map<std::string, std::string, std::less<>> v1;

    /// Where the hierarchies are mounted, v2's too.
    std::set<std::string> mounts;

    /// "v2", "v1", "hybrid" or "none".
    std::string_view name() const;
};

/// kInvalidArgument if a line is not of the form that proc(5) and cgroups(7) give.
Result<CgroupLayout> parse_cgroup_layout(std::string_view membership, std::string_view mountinfo);

Result<CgroupLayout> read_cgroup_layout();

/// The octal escapes of mountinfo ("\040" for a space) resolved.
std::string unescape_mount_path(std::string_view text);

}  // namespace cellkeep::sandbox
