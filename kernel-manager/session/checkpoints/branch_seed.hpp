// SPDX-License-Identifier: Apache-2.0
//
// What a session gives to a branch of it, and what the branch gives in return. Values and
// callbacks.
#pragma once

#include "kernel-manager/checkpoint/files/file_keeper.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/kernel/process/kernel_process.hpp"
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "kernel-manager/session/checkpoints/family.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"
#include "sandbox/server/branch_launcher.hpp"

#include <boost/asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace cellkeep::session {

/// How one process gets from the parent's sandbox to the branch's.
struct BranchTarget {
    std::vector<UniqueFd> namespaces;  // sandbox::Sandbox::namespaces()
    std::function<Status(const UniqueFd& stdout_fd, const UniqueFd& stderr_fd)> give_outputs;
    /// Puts the files in place. The store has their contents, and is kept meanwhile.
    std::function<boost::asio::awaitable<Status>(
        checkpoint::FileKeeper::Kept, std::shared_ptr<checkpoint::FileVersions>)>
        take_files;
};

struct BranchSeed {
    std::shared_ptr<sandbox::BranchLauncher> launcher;
    std::shared_ptr<FamilyMember> parent;
    /// Of the parent, whose root the branch has: perhaps another program's than this one.
    KernelSpec spec = {};
    std::shared_ptr<const KernelCatalog> catalog = nullptr;
    /// Once. The process is a child of the branch's pid 1 and waits until it is spoken to.
    /// kConflict: the parent makes a checkpoint or rolls back; kNotFound: the checkpoint is gone;
    /// kSystem: it cannot be forked; kPermissionDenied, kProtocol, kTimeout: it did not do what it
    /// should.
    std::function<boost::asio::awaitable<Result<WokenProcess>>(BranchTarget)> come;
};

}  // namespace cellkeep::session
