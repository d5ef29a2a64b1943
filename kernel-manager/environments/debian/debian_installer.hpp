// SPDX-License-Identifier: Apache-2.0
//
// Has apt-get fetch packages of Debian for an environment, from the sources that this machine has,
// and unpacks them: no script of a package runs, and nothing of this machine is changed
// (docs/decisions/0030-packages-of-debian.md). Blocks: not for the event loop.
#pragma once

#include "kernel-manager/environments/debian/debian_order.hpp"
#include "kernel-manager/environments/debian/debian_record.hpp"
#include "kernel-manager/image/image_builder.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace cellkeep::environments {

/// Beneath an image's root.
inline constexpr const char* kSystemFolder = "/system";
/// Folders that a package adds to those of the loader (/etc/ld.so.conf.d).
inline constexpr std::size_t kLibraryFoldersMax = 16;

struct DebianInstallation {
    std::string directory;  // that is made and holds what a session sees, a tree from "/" on
    std::string scratch;    // holds it and all else that is written
    std::chrono::steady_clock::time_point deadline;
    std::uint64_t download_bytes_max = 0;  // of the scratch directory
    std::uint64_t bytes_max = 0;           // of the tree
};

/// $CELLKEEP_APT_GET, else apt-get on $PATH; likewise CELLKEEP_DPKG_DEB. kUnavailable.
Result<std::string> find_apt_get();
Result<std::string> find_dpkg_deb();

/// kUnavailable with what apt-get says if the packages cannot be had or do not go together, and if
/// this is no Debian or apt's lists are empty; kConflict if a package of the image would get
/// another version; kLimitExceeded, kTimeout; kProtocol for what is no package.
Result<DebianRecord> install_debian_packages(
    const DebianOrder& order,
    const DebianInstallation& installation,
    const image::Progress& progress);

}  // namespace cellkeep::environments
