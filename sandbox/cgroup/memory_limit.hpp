// SPDX-License-Identifier: Apache-2.0
//
// The memory limit of one cgroup, v2 or v1, and what it counts: memory.max and its files
// (cgroup-v2.rst, "Memory"), or memory.limit_in_bytes and its files (cgroup-v1/memory.rst). Swap is
// limited with it where the kernel accounts for swap. Knows the directory by its path and makes
// nothing. Not thread-safe.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/cgroup/control_file.hpp"
#include "sandbox/cgroup/counter_file.hpp"

#include <cstdint>
#include <string>

namespace cellkeep::sandbox {

/// On cgroup v1, the buffers of a session's sockets may hold this part of its memory besides it.
inline constexpr std::uint64_t kSocketMemoryShare = 8;

class MemoryLimit {
 public:
    /// What the limit does not count on this host, and what would change that.
    struct Uncounted {
        const char* what = nullptr;  // null: it counts everything
        const char* fix = nullptr;
    };

    /// No limit: nothing is in force, and everything that it counts is 0.
    MemoryLimit() = default;
    /// Writes the limit. Errors are those of the writes: then it may be half in force.
    static Result<MemoryLimit> apply_v2(const std::string& directory, std::uint64_t bytes);
    static Result<MemoryLimit> apply_v1(const std::string& directory, std::uint64_t bytes);

    /// One that is in force already. Empty: none is.
    static MemoryLimit take_over(std::string directory, CgroupVersion version);

    bool in_force() const { return !directory_.empty(); }
    const std::string& directory() const { return directory_; }
    CgroupVersion version() const { return v2_ ? CgroupVersion::kV2 : CgroupVersion::kV1; }
    /// For the isolation report.
    const char* mechanism() const { return v2_ ? "cgroup v2 memory" : "cgroup v1 memory"; }
    const Uncounted& uncounted() const { return uncounted_; }

    /// kConflict if more is in use: cgroup v2 would kill to get there. Precondition: in_force().
    Status change(std::uint64_t bytes);

    std::uint64_t bytes() const;
    /// How often the limit was reached.
    std::uint64_t refusals() const;
    /// The highest number of bytes; 0 if it is not known.
    std::uint64_t peak() const;
    /// From now on peak() is the highest since now. False: this kernel cannot do that.
    bool restart_peak();
    /// One system call; the file stays open until close_counter().
    std::uint64_t oom_kills() const;
    void close_counter() { oom_kills_file_.close(); }

 private:
    std::string directory_;
    bool v2_ = false;
    Uncounted uncounted_;
    UniqueFd peak_;  // v2: a descriptor with a peak of its own; v1: the file, kept open
    mutable CounterFile oom_kills_file_;
};

}  // namespace cellkeep::sandbox
