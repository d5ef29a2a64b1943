// SPDX-License-Identifier: Apache-2.0
//
// Stops and continues everything in a cgroup and beneath it: cgroup.freeze (cgroup-v2.rst) or
// freezer.state (cgroup-v1/freezer-subsystem.rst). Knows the directory by its path. Not
// thread-safe.
#pragma once

#include "protocol/support/result.hpp"
#include "sandbox/cgroup/control_file.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace cellkeep::sandbox {

class Freezer {
 public:
    /// Of no cgroup: freeze() and thaw() are kUnavailable.
    Freezer() = default;
    Freezer(CgroupVersion version, std::string directory)
        : directory_(std::move(directory)), version_(version) {}

    /// This kernel has the file; v2 has it since Linux 5.2.
    bool works() const;
    /// For the isolation report.
    const char* mechanism() const {
        return version_ == CgroupVersion::kV2 ? "cgroup v2 freeze" : "cgroup v1 freezer";
    }
    /// Empty: of no cgroup.
    const std::string& directory() const { return directory_; }
    CgroupVersion version() const { return version_; }

    /// v2: kTimeout if it takes longer than the patience; it is in force when it comes. v1 does not
    /// wait.
    Status freeze(std::chrono::milliseconds patience);
    Status thaw();

 private:
    std::string directory_;
    CgroupVersion version_ = CgroupVersion::kV2;
};

}  // namespace cellkeep::sandbox
