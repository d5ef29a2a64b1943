// SPDX-License-Identifier: Apache-2.0
//
// Removes a directory of a workspace with everything in it, as the guest could, never through a
// link and never outside. The guest may fill it again meanwhile: named bounds end the removal.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <dirent.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::sandbox {

inline constexpr std::size_t kRemovedEntriesMax = 20'000;
/// Directories that are open at once; what is deeper is moved up first.
inline constexpr std::size_t kRemovedDepthMax = 256;

/// A removal in slices, so that the caller can do other work in between. Owns its descriptors: it
/// may outlive the workspace. Not thread-safe.
class Removal {
 public:
    struct OpenDirectory {
        std::unique_ptr<DIR, int (*)(DIR*)> stream;
        std::string name;  // in its parent
    };

    /// Errors are those of remove_all(). A file is gone afterwards.
    static Result<Removal> begin(const Workspace& workspace, const std::string& path);
    Removal(Removal&&) noexcept = default;
    Removal& operator=(Removal&&) noexcept = default;
    Removal(const Removal&) = delete;
    Removal& operator=(const Removal&) = delete;
    ~Removal() = default;

    /// Removes up to this many entries more: whether there is more to do.
    Result<bool> remove_some(std::size_t entries);

 private:
    Removal(uid_t uid, gid_t gid) : uid_(uid), gid_(gid) {}

    uid_t uid_;
    gid_t gid_;
    UniqueFd parent_;
    std::vector<OpenDirectory> open_;  // from the one that is removed down to where it is
    std::size_t removed_ = 0;
    bool lifted_ = false;
};

/// A file too. kNotFound; kLimitExceeded past a bound, then part of it is gone; kConflict if the
/// guest fills it faster than it is emptied; kPermissionDenied if an input is mounted in it. path
/// must not be empty.
Status remove_all(const Workspace& workspace, const std::string& path);

}  // namespace cellkeep::sandbox
