// SPDX-License-Identifier: Apache-2.0
//
// The limit on the processes of one cgroup, and what it counts: pids.max and its files, which v2
// and v1 have alike (cgroup-v2.rst, "PID"; cgroup-v1/pids.rst). Knows the directory by its path and
// makes nothing. Not thread-safe.
#pragma once

#include "protocol/support/result.hpp"
#include "sandbox/cgroup/control_file.hpp"
#include "sandbox/cgroup/counter_file.hpp"

#include <cstdint>
#include <string>

namespace cellkeep::sandbox {

class ProcessLimit {
 public:
    /// No limit: nothing is in force, and everything that it counts is 0.
    ProcessLimit() = default;
    /// processes: besides pid 1. Errors are those of the write.
    static Result<ProcessLimit> apply(
        CgroupVersion version, const std::string& directory, std::uint32_t processes);

    /// One that is in force already. Empty: none is.
    static ProcessLimit take_over(std::string directory, CgroupVersion version);

    bool in_force() const { return !directory_.empty(); }
    const std::string& directory() const { return directory_; }
    CgroupVersion version() const { return version_; }
    /// For the isolation report.
    const char* mechanism() const {
        return version_ == CgroupVersion::kV2 ? "cgroup v2 pids" : "cgroup v1 pids";
    }

    /// More processes than that live on; none is added. Precondition: in_force().
    Status change(std::uint32_t processes);
    std::uint64_t processes() const;
    /// Forks that were refused. One system call; the file stays open until close_counter().
    std::uint64_t refusals() const;
    void close_counter() { refusals_file_.close(); }

 private:
    std::string directory_;
    CgroupVersion version_ = CgroupVersion::kV2;
    mutable CounterFile refusals_file_;
};

}  // namespace cellkeep::sandbox
