// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/file_restore.hpp"

#include <utility>

namespace cellkeep::checkpoint {

using sandbox::EntryKind;
using sandbox::FileAttributes;

namespace {

constexpr std::size_t kRestoreReadBytes = 256ULL << 10U;
/// What the owner needs of a directory to change what is in it.
constexpr std::uint32_t kOwnerAll = 0700;

}  // namespace

FileRestore::FileRestore(
    std::shared_ptr<FileVersions> versions,
    std::shared_ptr<const Manifest> target,
    std::shared_ptr<const Manifest> left,
    std::shared_ptr<FileVersions> source)
    : versions_(std::move(versions)),
      target_(std::move(target)),
      left_(std::move(left)),
      source_(source ? std::move(source) : versions_),
      walker_(versions_->workspace(), "") {}

bool FileRestore::advance() {
    slice_bytes_ = 0;
    for (std::size_t steps = 0;
         steps < kSliceEntries && slice_bytes_ < kSliceBytes && phase_ != Phase::kDone;
         ++steps) {
        step();
    }
    return phase_ != Phase::kDone;
}

void FileRestore::step() {
    switch (phase_) {
        case Phase::kLook:
            return look();
        case Phase::kRemove:
            return remove_next();
        case Phase::kDirectories:
            return make_next_directory();
        case Phase::kContents:
            return writing_.has_value() ? write_on() : restore_next();
        case Phase::kAttributes:
            return settle_next_directory();
        case Phase::kDone:
            return;
    }
}

void FileRestore::look() {
    if (auto entry = walker_.next()) {
        if (versions_->ignores(entry->path)) {
            return;
        }
        if (entry->state.kind == EntryKind::kDirectory &&
            (entry->state.mode & kOwnerAll) != kOwnerAll) {
            // Before the walker looks into it. Its own permissions come back when all is in it.
            (void)sandbox::set_attributes(
                versions_->workspace(),
                entry->path,
                EntryKind::kDirectory,
                {entry->state.mode | kOwnerAll, entry->state.modified})
                .has_value();  // what cannot be done then says so
        }
        present_.emplace(std::move(entry->path), entry->state);
        return;
    }
    if (!walker_.complete()) {
        (void)succeeded(
            Error(ErrorCode::kLimitExceeded, "there is more in the workspace than is looked at"),
            "");
    }
    begin(Phase::kRemove);
}

void FileRestore::begin(Phase phase) {
    phase_ = phase;
    to_remove_ = present_.crbegin();  // what is in a directory goes before it
    next_ = target_->files.begin();
    to_settle_ = target_->files.crbegin();
}

/// What is there without being in the target, and must not go.
bool FileRestore::stays(const std::string& path) const {
    const auto is_unkept = [&path](const Manifest& manifest) {
        // Or something that is in it.
        const std::string inside = path + "/";
        const auto first = manifest.unkept.lower_bound(inside);
        return manifest.unkept.contains(path) ||
               (first != manifest.unkept.end() && first->first.starts_with(inside));
    };
    return !target_->complete || is_unkept(*target_) ||
           (left_ && (!left_->complete || is_unkept(*left_)));
}

/// What is there has contents that the caller could not keep.
bool FileRestore::is_spared(const std::string& path) const {
    if (!left_) {
        return false;
    }
    const auto found = left_->unkept.find(path);
    return found != left_->unkept.end() && found->second != Unkept::kKind;
}

void FileRestore::remove_next() {
    if (to_remove_ == present_.crend()) {
        begin(Phase::kDirectories);
        return;
    }
    const auto& [path, state] = *to_remove_++;
    const auto wanted = target_->files.find(path);
    const bool other_kind = wanted != target_->files.end() && wanted->second.kind != state.kind;
    if ((wanted != target_->files.end() && !other_kind) || (!other_kind && stays(path)) ||
        is_spared(path)) {
        return;
    }
    const Status removed = versions_->workspace().remove(path);
    if (removed.has_value()) {
        ++restored_.removed;
        versions_->forget(path);
    } else if (removed.error().code() != ErrorCode::kNotFound) {
        (void)succeeded(removed, path);
    }
}

void FileRestore::make_next_directory() {
    if (next_ == target_->files.end()) {
        begin(Phase::kContents);
        return;
    }
    const auto& [path, file] = *next_++;
    if (file.kind != EntryKind::kDirectory) {
        return;
    }
    const auto found = present_.find(path);
    if (found != present_.end() && found->second.kind == EntryKind::kDirectory) {
        return;
    }
    if (succeeded(versions_->workspace().make_directory(path), path)) {
        ++restored_.written;
    }
}

void FileRestore::restore_next() {
    if (next_ == target_->files.end()) {
        begin(Phase::kAttributes);
        return;
    }
    const auto& [path, file] = *next_;
    if (is_spared(path)) {
        const Error why(ErrorCode::kConflict, "what is there could not be kept, and stays");
        (void)succeeded(why, path);
    } else if (file.kind == EntryKind::kFile) {
        restore_file(path, file);
    } else if (file.kind == EntryKind::kLink) {
        restore_link(path, file);
    }
    if (!writing_.has_value()) {
        ++next_;
    }
}

void FileRestore::restore_file(const std::string& path, const KeptFile& file) {
    const auto found = present_.find(path);
    if (found != present_.end()) {
        const std::string* digest = versions_->find(path, found->second);
        if (digest != nullptr && *digest == file.content) {
            if (found->second.mode != file.mode || found->second.modified != file.modified) {
                const Status done = sandbox::set_attributes(
                    versions_->workspace(), path, EntryKind::kFile, {file.mode, file.modified});
                restored_.written += succeeded(done, path) ? 1U : 0U;
                versions_->forget(path);
            }
            return;
        }
    }
    versions_->forget(path);
    auto begun = sandbox::Rewriting::begin(versions_->workspace(), path);
    if (begun.has_error()) {
        (void)succeeded(begun.error(), path);
        return;
    }
    writing_.emplace(Writing{std::move(begun).value(), 0});
}

void FileRestore::write_on() {
    const auto& [path, file] = *next_;
    buffer_.resize(kRestoreReadBytes);
    const auto got = source_->blobs().read(file.content, writing_->written, buffer_);
    Status done = ok();
    if (got.has_error()) {
        done = got.error();
    } else if (got.value() > 0) {
        done = writing_->file.append({buffer_.data(), got.value()});
        writing_->written += got.value();
        slice_bytes_ += got.value();
        if (done.has_value()) {
            return;
        }
    }
    if (done.has_value()) {
        const auto state = writing_->file.finish({file.mode, file.modified});
        if (state.has_value()) {
            versions_->note(path, state.value(), file.content);
            ++restored_.written;
        } else {
            done = state.error();
        }
    }
    (void)succeeded(done, path);
    writing_.reset();
    ++next_;
}

void FileRestore::restore_link(const std::string& path, const KeptFile& file) {
    const sandbox::Workspace& workspace = versions_->workspace();
    if (const auto found = present_.find(path);
        found != present_.end() && found->second.kind == EntryKind::kLink) {
        const auto target = workspace.read_link(path);
        if (target.has_value() && target.value() == file.content) {
            return;
        }
        (void)workspace.remove(path).has_value();  // the next call says what is wrong
    }
    if (succeeded(sandbox::make_link(workspace, path, file.content), path)) {
        ++restored_.written;
    }
}

void FileRestore::settle_next_directory() {
    if (to_settle_ == target_->files.crend()) {
        begin(Phase::kDone);
        return;
    }
    const auto& [path, file] = *to_settle_++;
    if (file.kind == EntryKind::kDirectory) {
        const Status done = sandbox::set_attributes(
            versions_->workspace(), path, EntryKind::kDirectory, {file.mode, file.modified});
        (void)succeeded(done, path);
    }
}

bool FileRestore::succeeded(const Status& done, const std::string& path) {
    if (done.has_value()) {
        return true;
    }
    ++restored_.failed;
    if (restored_.failures.size() < kFailuresNamedMax) {
        restored_.failures.push_back({path, done.error().message()});
    }
    return false;
}

}  // namespace cellkeep::checkpoint
