// SPDX-License-Identifier: Apache-2.0
//
// What the checkpoints of one session consist of: the tree, the sleeping copies, and the files that
// are kept with each. Owns all of them. io_context thread only; the session keeps it alive while a
// call is under way.
#pragma once

#include "kernel-manager/checkpoint/checkpoint.hpp"
#include "kernel-manager/checkpoint/checkpoint_tree.hpp"
#include "kernel-manager/checkpoint/files/blob_store.hpp"
#include "kernel-manager/checkpoint/files/file_keeper.hpp"
#include "kernel-manager/checkpoint/files/file_merge.hpp"
#include "kernel-manager/checkpoint/files/file_restore.hpp"
#include "kernel-manager/checkpoint/files/file_versions.hpp"
#include "kernel-manager/checkpoint/files/held_files.hpp"
#include "kernel-manager/checkpoint/files/manifest.hpp"
#include "kernel-manager/checkpoint/files/merge_plan.hpp"
#include "kernel-manager/kernel/process/sleeping_copy.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/workspace/workspace.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cellkeep::session {

/// The checkpoints of a session on their way from one program in the server's process to another.
struct PassedCheckpoints {
    struct One {
        checkpoint::Checkpoint checkpoint;  // without the summary of its files
        std::shared_ptr<const checkpoint::Manifest> files;
        PassedSleeper sleeper;
    };
    std::vector<One> all;  // oldest first
    std::optional<std::string> origin;
    checkpoint::CheckpointTree::GoneOnes gone;
    std::optional<checkpoint::PassedBlobs> blobs;  // nullopt: no files were ever kept
    /// The checkpoint as which the interpreter was when it had begun so much.
    struct Settled {
        std::string checkpoint;
        std::uint64_t begun = 0;
    };
    std::optional<Settled> settled;
    // Of a branch: what it was made with, and MergeBase::files.
    std::shared_ptr<const checkpoint::Manifest> begun;
    std::shared_ptr<const checkpoint::Manifest> merge_base;
};

struct SessionSetup;

class KeptCheckpoints {
 public:
    using Files = checkpoint::FileKeeper::Kept;
    struct Parts {
        std::shared_ptr<SleepingCopy> copy;
        Files files;
    };
    /// Where files come from and go to.
    struct Places {
        sandbox::Workspace workspace;   // valid until close()
        std::set<std::string> mounted;  // paths of it that are not the guest's
        std::shared_ptr<WorkThread> work_thread;
        std::shared_ptr<checkpoint::BlobSpace> space;  // null: no files are kept
    };

    KeptCheckpoints(boost::asio::io_context& io, Places places);
    KeptCheckpoints(const KeptCheckpoints&) = delete;
    KeptCheckpoints& operator=(const KeptCheckpoints&) = delete;
    ~KeptCheckpoints() = default;

    // --- which there are
    const checkpoint::CheckpointTree& tree() const { return tree_; }
    bool empty() const { return parts_.empty(); }
    /// Null: there is none.
    std::shared_ptr<SleepingCopy> copy_of(const std::string& id) const;
    Files files_of(const std::string& id) const;
    void set_origin(std::optional<std::string> id) { tree_.set_origin(std::move(id)); }
    void confirm(const std::string& id) { tree_.confirm(id); }
    /// With the summary of its files. Precondition: there is room.
    void add(checkpoint::Checkpoint checkpoint, Parts parts);
    void forget(const std::string& id, checkpoint::Gone why);
    /// Of the checkpoint whose copy that is.
    std::optional<std::string> find_worker(sandbox::WorkerId worker) const;

    // --- files
    /// Between both, the contents of forgotten checkpoints stay.
    void pin() { pinned_ = true; }
    void unpin();
    /// The files as they are now, for add() or drop(). The oldest checkpoints without labels make
    /// room for them, but for the one that is kept; their ids are added to evicted.
    boost::asio::awaitable<Result<Files>> capture(
        std::string kept, std::vector<std::string>& evicted);
    /// The same, and nothing goes for it.
    boost::asio::awaitable<Result<Files>> look();
    boost::asio::awaitable<checkpoint::FileChanges> compare(
        Files earlier, Files later, checkpoint::ChangesPage page) {
        return keeper_.compare(std::move(earlier), std::move(later), std::move(page));
    }
    boost::asio::awaitable<Result<checkpoint::FileChanges>> compare_with_now(
        Files earlier, checkpoint::ChangesPage page);
    /// The files as they are now, for another session. kUnavailable: this server keeps none.
    boost::asio::awaitable<Result<std::shared_ptr<const checkpoint::HeldFiles>>> hold_now();
    /// See checkpoint::FileMerge.
    boost::asio::awaitable<Result<checkpoint::MergeAnswer>> merge(
        std::shared_ptr<const checkpoint::HeldFiles> theirs,
        Files base,
        checkpoint::MergeOrder order);
    void drop(Files files) { keeper_.drop(std::move(files)); }
    boost::asio::awaitable<Result<checkpoint::Restored>> restore(Files target, Files left) {
        return keeper_.restore(std::move(target), std::move(left));
    }

    /// What a branch has from its parent, whose store that is.
    boost::asio::awaitable<Result<checkpoint::Restored>> restore_from(
        Files target, std::shared_ptr<checkpoint::FileVersions> source) {
        return keeper_.restore_from(std::move(target), std::move(source));
    }
    std::shared_ptr<checkpoint::FileVersions> versions() const { return keeper_.versions(); }

    // --- their way to another program in the server's process
    /// Nothing is asked of a copy, and no work with files is under way.
    bool is_at_rest() const;
    /// What remains is as after close(), but that the copies sleep on. Precondition: is_at_rest().
    PassedCheckpoints pass_on();
    /// In a new one. kProtocol: they do not fit each other.
    Status go_on(PassedCheckpoints passed);
    const std::map<std::string, Parts>& parts() const { return parts_; }

    /// With their private memory.
    boost::asio::awaitable<checkpoint::CheckpointList> list();
    /// The session has ended: all copies are killed, and no files are kept.
    void close();

 private:
    boost::asio::io_context& io_;
    std::shared_ptr<WorkThread> work_thread_;
    checkpoint::FileKeeper keeper_;
    checkpoint::CheckpointTree tree_;
    std::map<std::string, Parts> parts_;  // by checkpoint
    std::vector<Files> forgotten_;        // while pinned
    bool pinned_ = false;
};

/// Of a session with this workspace.
KeptCheckpoints::Places find_places(const SessionSetup& setup, const sandbox::Workspace& workspace);

}  // namespace cellkeep::session
