// SPDX-License-Identifier: Apache-2.0
//
// The plan: everything the launcher and pid 1 need, decided by the server before they start. They
// carry it out and decide nothing. Values only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cellkeep::sandbox {

struct PlanReadOnlyPath {
    std::string source;
    std::string target;  // absolute inside
    bool executable = true;
    bool optional = false;
    bool input = false;     // one regular file, its last component no link
    std::string over = {};  // a directory whose entries lie in front of source's; empty: none
    bool operator==(const PlanReadOnlyPath&) const = default;
};

struct PlanTmpfs {
    std::string target;   // absolute inside
    std::string options;  // for mount(2)
    bool executable = true;
    bool operator==(const PlanTmpfs&) const = default;
};

struct PlanFile {
    std::string path;  // absolute inside
    std::string contents;
    bool operator==(const PlanFile&) const = default;
};

struct PlanLink {
    std::string path;  // absolute inside
    std::string target;
    bool operator==(const PlanLink&) const = default;
};

struct PlanRlimit {
    std::uint32_t resource = 0;
    std::uint64_t value = 0;
    bool operator==(const PlanRlimit&) const = default;
};

struct Plan {
    bool privileged = false;  // the server is root: map host_uid, clone mounts before the clone
    std::uint32_t host_uid = 0;
    std::uint32_t host_gid = 0;
    bool zygote =
        false;  // of a zygote: no lock-down; if privileged, ids first_id … map to themselves
    std::uint32_t first_id = 0;
    std::uint32_t id_count = 0;
    bool nested = false;  // made in a zygote: sources are paths there, cgroups descriptors
    /// Made in another sandbox, its parent, for a fork of the parent's worker: the root is the
    /// parent's, with directories of its own over those that a guest writes to.
    bool branch = false;
    /// Its processes may leave for branches: Landlock does not say where they may write, because it
    /// cannot know the directories of a branch.
    bool branches = false;
    std::uint32_t waived = 0;  // control_bit()s whose failure is recorded instead of fatal
    /// kLauncherNetworkFd, or if nested one of the zygote's, instead of one of its own.
    bool enter_network = false;
    bool make_listener = false;  // in a network namespace of its own: the socket at kProxyPort
    std::string hostname;
    std::vector<std::string> cgroup_procs;  // files that take pid 1's pid
    std::string worker_procs;  // the cgroup.procs file that every worker enters; or empty
    std::vector<PlanReadOnlyPath> read_only;
    std::vector<PlanTmpfs> tmpfs;
    std::vector<PlanLink> links;
    std::vector<PlanFile> files;
    std::vector<PlanRlimit> rlimits;
    /// RLIMIT_NOFILE of a worker, at most the hard limit that there is. Pid 1 keeps the server's:
    /// sendmsg(2) fails with ETOOMANYREFS if the user has more descriptors in flight than the
    /// sender may have open (unix(7)), and pid 1 answers the server with descriptors.
    std::uint64_t worker_open_files = 0;
    std::string seccomp;  // an array of struct sock_filter
    bool operator==(const Plan&) const = default;
};

/// How many read-only paths a policy may have, and with its inputs a plan (each is one descriptor
/// in the launcher).
inline constexpr std::size_t kReadOnlyPathsMax = 256;
inline constexpr std::size_t kPlanPathsMax = kReadOnlyPathsMax + 64;

}  // namespace cellkeep::sandbox
