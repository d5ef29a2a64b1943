// SPDX-License-Identifier: Apache-2.0
//
// Runs apt-get for a set of packages that is not this machine's: with a status file of our own, and
// caches in a folder of ours. The sources, lists and keys are this machine's, or those that
// $APT_CONFIG names. Blocks: not for the event loop.
#pragma once

#include "kernel-manager/environments/debian/debian_plan.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cellkeep::environments {

/// Of what a simulation says.
inline constexpr std::size_t kAptSaidBytesMax = 8UL << 20U;

struct AptGetPlace {
    std::string program;
    std::string folder;   // of this user alone, for all that it writes
    std::string bounded;  // the folder whose bytes are bounded; holds the other
    std::chrono::steady_clock::time_point deadline;
    std::uint64_t bytes_max = 0;
};

class AptGet {
 public:
    explicit AptGet(AptGetPlace place) : place_(std::move(place)) {}

    /// status: of the packages that count as installed.
    Status prepare(const std::string& status) const;
    /// What it would do to install them (read_debian_plan()). kUnavailable with what it says.
    Result<std::string> simulate(const std::vector<std::string>& packages) const;
    /// Each in its file; apt-get compares sizes and hashes with the signed lists.
    Status download(const std::vector<DebianPackage>& packages) const;
    std::string path_of(const DebianPackage& package) const;

 private:
    std::vector<std::string> command(const std::vector<std::string>& what) const;
    Result<std::string> run(const std::vector<std::string>& what) const;
    Error explain(const std::string& said) const;

    AptGetPlace place_;
};

}  // namespace cellkeep::environments
