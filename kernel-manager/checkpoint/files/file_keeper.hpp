// SPDX-License-Identifier: Apache-2.0
//
// Keeps the files of one session's workspace and puts them back, on a work thread, one piece of
// work after another. All calls on the io_context thread; answers, too.
#pragma once

#include "kernel-manager/checkpoint/files/file_merge.hpp"
#include "kernel-manager/checkpoint/files/file_restore.hpp"
#include "kernel-manager/checkpoint/files/file_versions.hpp"
#include "kernel-manager/checkpoint/files/held_files.hpp"
#include "kernel-manager/checkpoint/files/manifest.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::checkpoint {

class FileKeeper {
 public:
    /// Of files that are kept, until drop().
    using Kept = std::shared_ptr<const Manifest>;
    /// Drops one that is kept. False: there is none that may go.
    using MakeRoom = std::function<bool()>;

    /// space: null keeps nothing, and every manifest is empty. The workspace's descriptor need be
    /// open only until the first capture. ignored: see FileVersions.
    FileKeeper(
        boost::asio::io_context& io,
        std::shared_ptr<WorkThread> thread,
        std::shared_ptr<BlobSpace> space,
        const sandbox::Workspace& workspace,
        std::set<std::string> ignored);
    FileKeeper(const FileKeeper&) = delete;
    FileKeeper& operator=(const FileKeeper&) = delete;
    ~FileKeeper() { close(); }

    /// kUnavailable: the host cannot keep them. Not while another capture or restore is under way.
    boost::asio::awaitable<Result<Kept>> capture(MakeRoom make_room);
    /// See FileRestore.
    boost::asio::awaitable<Result<Restored>> restore(Kept target, Kept left);
    /// Into a workspace that has no files, what another session keeps, on the same thread.
    boost::asio::awaitable<Result<Restored>> restore_from(
        Kept target, std::shared_ptr<FileVersions> source);
    /// What another session holds, since `base`; ours is captured and not dropped. See FileMerge.
    /// Precondition: something was captured.
    boost::asio::awaitable<MergeAnswer> merge(
        Kept ours, std::shared_ptr<const HeldFiles> theirs, Kept base, MergeOrder order);
    boost::asio::awaitable<FileChanges> compare(Kept earlier, Kept later, ChangesPage page);
    /// In place of drop().
    std::shared_ptr<const HeldFiles> hold(Kept kept) const {
        return std::make_shared<const HeldFiles>(thread_, versions_, std::move(kept));
    }
    /// Null: nothing was captured yet.
    std::shared_ptr<FileVersions> versions() const { return versions_; }
    void drop(Kept kept);
    /// The session has ended: nothing is kept any more. Work that is under way comes to its end.
    void close();
    // --- its way to another program in the server's process
    /// True if no work thread of this keeper runs, and no HeldFiles exists.
    bool is_at_rest() const;
    /// Gives all contents away; this keeper keeps nothing any more. nullopt if nothing was ever
    /// captured. Precondition: is_at_rest().
    std::optional<PassedBlobs> pass_on();
    /// Takes contents over, and holds them for these checkpoints. To be called before the first
    /// capture. kProtocol if a checkpoint names contents that are missing, or no checkpoint names
    /// some.
    Status go_on(PassedBlobs passed, const std::vector<Kept>& kept);
    /// Of the contents that are kept, each once.
    std::uint64_t bytes() const { return versions_ ? versions_->blobs().bytes() : 0; }

 private:
    Status open();
    boost::asio::awaitable<Restored> run(std::shared_ptr<FileRestore> work);

    boost::asio::io_context& io_;
    std::shared_ptr<WorkThread> thread_;
    std::shared_ptr<BlobSpace> space_;
    sandbox::Workspace workspace_;
    std::set<std::string> ignored_;
    std::shared_ptr<FileVersions> versions_;  // null before the first capture
    bool closed_ = false;
};

}  // namespace cellkeep::checkpoint
