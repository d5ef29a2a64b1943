// SPDX-License-Identifier: Apache-2.0
//
// What a session is allowed: values only. Every bound here is enforced by a mechanism that the
// isolation report names (sandbox/isolation.hpp); nothing here is advice.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::sandbox {

/// A host path that is visible, read-only, at target inside. Symbolic links in source are followed
/// once, when the sandbox is made.
struct ReadOnlyPath {
    std::string source;
    std::string target;      // absolute, inside the sandbox
    bool executable = true;  // false: mounted noexec
    bool optional = false;   // true: a missing source is skipped, not an error
};

struct ResourceLimits {
    double cpu_cores = 1.0;                         // cgroup CPU bandwidth
    std::uint64_t memory_bytes = 512ULL << 20U;     // everything the kernel charges, tmpfs included
    std::uint64_t workspace_bytes = 200ULL << 20U;  // tmpfs at /workspace
    std::uint64_t workspace_inodes = 20'000;
    std::uint64_t tmp_bytes = 100ULL << 20U;  // tmpfs at /tmp
    std::uint64_t tmp_inodes = 10'000;
    std::uint64_t shm_bytes = 64ULL << 20U;  // tmpfs at /dev/shm
    std::uint32_t processes = 64;            // processes and threads together
    std::uint32_t open_files = 1024;         // RLIMIT_NOFILE
    std::uint64_t file_bytes = 1ULL << 32U;  // RLIMIT_FSIZE
};

/// Network access. kNone is an empty network namespace whose loopback is up.
enum class NetworkMode { kNone };

struct Policy {
    std::string hostname = "cellkeep";
    ResourceLimits limits;
    NetworkMode network = NetworkMode::kNone;
    std::vector<ReadOnlyPath> read_only;
    /// The host uid and gid that the session runs as when the server is root (one per session;
    /// never 0). Ignored when the server is an ordinary user: then the session runs as that user,
    /// mapped.
    uid_t host_uid = 0;
    gid_t host_gid = 0;
    /// Names of controls (sandbox/isolation.hpp) whose absence the operator accepts. Empty: any
    /// control that cannot be applied refuses the session.
    std::set<std::string, std::less<>> allow_degraded;
    /// The cellkeep-sandbox program; empty: the one beside the running program.
    std::string launcher;
};

/// The uid, gid and home directory that code inside sees.
inline constexpr uid_t kGuestUid = 1000;
inline constexpr gid_t kGuestGid = 1000;
inline constexpr const char* kGuestUser = "cellkeep";
inline constexpr const char* kWorkspacePath = "/workspace";

}  // namespace cellkeep::sandbox
