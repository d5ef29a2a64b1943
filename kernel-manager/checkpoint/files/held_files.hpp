// SPDX-License-Identifier: Apache-2.0
//
// What the files of a session's workspace were at one moment, with their contents, for work that
// concerns another session, too. The contents stay until it is destroyed, also when their session
// has ended. io_context thread only, but for what manifest() and versions() lead to, which are the
// work thread's.
#pragma once

#include "kernel-manager/checkpoint/files/file_versions.hpp"
#include "kernel-manager/checkpoint/files/manifest.hpp"
#include "protocol/support/work_thread.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace cellkeep::checkpoint {

class HeldFiles {
 public:
    /// manifest: as captured with these versions and not dropped. versions: null holds nothing.
    HeldFiles(
        std::shared_ptr<WorkThread> thread,
        std::shared_ptr<FileVersions> versions,
        std::shared_ptr<const Manifest> manifest)
        : thread_(std::move(thread)),
          versions_(std::move(versions)),
          manifest_(std::move(manifest)) {}
    HeldFiles(const HeldFiles&) = delete;
    HeldFiles& operator=(const HeldFiles&) = delete;
    ~HeldFiles() {
        if (versions_) {
            thread_->run([versions = std::move(versions_), manifest = std::move(manifest_)] {
                versions->drop(*manifest);
                return WorkThread::Slice::kDone;
            });
        }
    }

    const std::shared_ptr<const Manifest>& manifest() const { return manifest_; }
    /// Null: the server keeps no contents.
    const std::shared_ptr<FileVersions>& versions() const { return versions_; }

 private:
    std::shared_ptr<WorkThread> thread_;
    std::shared_ptr<FileVersions> versions_;
    std::shared_ptr<const Manifest> manifest_;
};

/// What a branch's files were when it was made, or when they were last merged: what both sides
/// have changed since then is a conflict. Shared by the branch and a merge of it.
struct MergeBase {
    std::shared_ptr<const Manifest> files;
};

/// The files of a session, now, for another one.
struct SessionFiles {
    std::shared_ptr<const HeldFiles> held;
    std::shared_ptr<MergeBase> base;  // null: it is no branch
};

/// What is compared. The earlier state is one of three.
struct ComparisonOrder {
    std::string against;                     // a checkpoint of the session; or
    std::shared_ptr<const HeldFiles> other;  // what another one has; or
    bool begun = false;                      // what the session, a branch, was made with
    std::optional<std::string> later;        // a checkpoint of the session; nullopt: now
    ChangesPage page;
};

}  // namespace cellkeep::checkpoint
