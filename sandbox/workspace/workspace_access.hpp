// SPDX-License-Identifier: Apache-2.0
//
// How the server reaches into a workspace: as the guest, beneath one descriptor, never through a
// link, never blocking. For the files that make up sandbox/workspace only.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <sys/types.h>

#include <string>

namespace cellkeep::sandbox {

/// Makes this thread look like the guest to the file system while it lives: new files belong to the
/// guest, and nothing is reached that the guest could not reach (setfsuid(2) also takes the file
/// capabilities away). Without effect in a server that is not root.
class GuestIdentity {
 public:
    GuestIdentity(uid_t uid, gid_t gid);
    GuestIdentity(const GuestIdentity&) = delete;
    GuestIdentity& operator=(const GuestIdentity&) = delete;
    ~GuestIdentity();

 private:
    bool active_;
};

/// The kind of failure that an errno of the guest's tree is.
Error workspace_failure(int error, const std::string& operation, const std::string& path);

/// openat2(2) with O_CLOEXEC and the RESOLVE flags of workspace.hpp; "" is the directory itself. -1
/// and errno. O_NONBLOCK everywhere: no fifo and no lease of the guest's may hold the server up.
int open_beneath(int directory, const std::string& path, int flags, mode_t mode);

/// kPermissionDenied if something is mounted at this name of the directory, in the mount namespace
/// of the directory's descriptor. unlink(2) and its kin refuse only what is mounted in the caller's
/// own namespace: from here they would take an input's mount away from the guest.
Status check_no_mount(int directory, const std::string& name);

/// As open_beneath, for directories.
Result<UniqueFd> open_directory_beneath(int directory, const std::string& path, int flags);

}  // namespace cellkeep::sandbox
