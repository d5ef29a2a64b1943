// SPDX-License-Identifier: Apache-2.0
//
// What a session is allowed: values only. Every bound here is enforced by a mechanism that the
// isolation report names (sandbox/policy/isolation.hpp); nothing here is advice.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
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
    bool shared = false;     // true: the operator shares this very path, it is in no image
    /// A directory whose entries lie in front of source's, by name and at every depth, as with
    /// overlayfs. A missing one is an error; if source is missing and optional, it is there alone.
    /// Empty: none.
    std::string over = {};
};

/// A private copy of what sessions see read-only (kernel-manager/image makes it): no inode of the
/// host's is reachable through it.
struct PrivateImage {
    std::string root;    // the directory that the read_only sources lie in
    std::string digest;  // "sha256:…" of its contents
    std::string format;  // what it is: "erofs image", "private copy"
};

/// An operator's file, shown read-only (nosuid, nodev, noexec) beneath /workspace. Mounted, not
/// copied: it counts against no limit, and what the host writes to it later is seen inside. Its
/// mode is the host's, so the session's user has to be able to read it. Directories above it are
/// the guest's own and may be renamed by it; the file itself cannot be changed, renamed or
/// unlinked. The server cannot read it through sandbox/workspace/workspace.hpp, which stays on its
/// mount; what the server writes to or removes at its path takes it out of the session, and leaves
/// the source alone.
struct InputMount {
    std::string source;  // absolute path of a regular file without symbolic links
    std::string target;  // relative to /workspace, no "." or "..", not beneath another target
};
inline constexpr std::size_t kInputsMax = 64;

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

/// Network access. kNone is an empty network namespace whose loopback is up. kProxy is the same,
/// and a TCP socket listens in it at 127.0.0.1:kProxyPort from before the first code runs, whose
/// connections the server accepts (Sandbox::take_proxy_listener): they are the only way out.
enum class NetworkMode { kNone, kProxy };
inline constexpr std::uint16_t kProxyPort = 3128;
/// Connections that wait to be accepted; beyond it a guest's connect(2) waits or times out.
inline constexpr int kProxyBacklog = 64;

/// Makes the sandbox one for a zygote (sandbox/server/zygote.hpp): its own namespaces, root and
/// cgroup, but what runs in it keeps every capability over them, and no filter. For the operator's
/// code, never a guest's.
struct ZygotePolicy {
    /// The host ids (uid and gid alike) of sandboxes that will be made in it, and its own. Of an
    /// ordinary user's there is one, the user's, whatever is said here.
    std::uint32_t first_id = 0;
    std::uint32_t id_count = 0;
};

struct Policy {
    std::string hostname = "cellkeep";
    ResourceLimits limits;
    NetworkMode network = NetworkMode::kNone;
    std::vector<ReadOnlyPath> read_only;
    std::vector<InputMount> inputs;    // at most kInputsMax
    std::vector<PrivateImage> images;  // where read_only comes from; empty: the host's own files
    /// The host uid and gid that the session runs as when the server is root (one per session;
    /// never 0). Ignored when the server is an ordinary user: then the session runs as that user,
    /// mapped.
    uid_t host_uid = 0;
    gid_t host_gid = 0;
    std::optional<ZygotePolicy> zygote;
    /// Its processes may leave for branches of it (Sandbox::create with a place). Landlock then
    /// does not say where they may write.
    bool branches = false;
    /// Names of controls (sandbox/policy/isolation.hpp) whose absence the operator accepts. Empty:
    /// any control that cannot be applied refuses the session.
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
