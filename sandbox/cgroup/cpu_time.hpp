// SPDX-License-Identifier: Apache-2.0
//
// The CPU time that a cgroup and those beneath it have used: cpu.stat (cgroup-v2.rst, "CPU"), which
// every v2 cgroup has, or cpuacct.usage (cgroup-v1/cpuacct.rst). One system call for each reading;
// the file stays open until close(). Not thread-safe.
#pragma once

#include "sandbox/cgroup/control_file.hpp"
#include "sandbox/cgroup/counter_file.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::sandbox {

class CpuTime {
 public:
    /// Of no cgroup: there is nothing to read.
    CpuTime() = default;
    CpuTime(CgroupVersion version, std::string directory)
        : directory_(std::move(directory)), version_(version) {}

    bool exists() const { return !directory_.empty(); }
    const std::string& directory() const { return directory_; }
    CgroupVersion version() const { return version_; }
    /// For the isolation report.
    const char* mechanism() const {
        return version_ == CgroupVersion::kV2 ? "cgroup v2 cpu.stat" : "cgroup v1 cpuacct";
    }
    /// The file that read() reads.
    std::string path() const;
    /// nullopt if the file cannot be read or has no such number. Precondition: exists().
    std::optional<std::chrono::microseconds> read() const;
    void close() { file_.close(); }

 private:
    std::string directory_;
    CgroupVersion version_ = CgroupVersion::kV2;
    mutable CounterFile file_;
};

}  // namespace cellkeep::sandbox
