// SPDX-License-Identifier: Apache-2.0
//
// One package of Debian (deb(5)): its files into a tree, and what its setup script would do.
// dpkg-deb decompresses it, and runs nothing of it. Blocks: not for the event loop.
#pragma once

#include "kernel-manager/environments/debian/debian_plan.hpp"
#include "kernel-manager/environments/debian/maintainer_script.hpp"
#include "kernel-manager/environments/debian/system_tree.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace cellkeep::environments {

struct UnpackOrder {
    std::string dpkg_deb;  // the program
    std::string folder;    // of this user alone, for archives while they are read
    std::chrono::steady_clock::time_point deadline;
    std::uint64_t bytes_max = 0;  // of the folder
};

struct UnpackedPackage {
    std::vector<AlternativeOffer> alternatives;
    bool does_more = false;  // its setup does more than links of alternatives
};

/// kProtocol if the file is no package, or another one than `package`; else as SystemTree::add().
Result<UnpackedPackage> unpack_package(
    const std::string& file,
    const DebianPackage& package,
    const UnpackOrder& order,
    SystemTree& tree);

}  // namespace cellkeep::environments
