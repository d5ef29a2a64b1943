// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/file_merge.hpp"

#include "sandbox/workspace/workspace_rewrite.hpp"

#include <utility>

namespace cellkeep::checkpoint {

using sandbox::EntryKind;
using sandbox::FileState;

namespace {

constexpr std::size_t kMergeReadBytes = 256ULL << 10U;
/// What the owner needs of a directory to change what is in it.
constexpr std::uint32_t kMergeOwnerAll = 0700;

bool is_same_content(const std::optional<KeptFile>& one, const KeptFile& other) {
    return one && one->kind == EntryKind::kFile && one->content == other.content;
}

}  // namespace

bool FileMerge::advance() {
    slice_bytes_ = 0;
    for (std::size_t steps = 0;
         steps < kSliceEntries && slice_bytes_ < kSliceBytes && phase_ != Phase::kDone;
         ++steps) {
        step();
    }
    return phase_ != Phase::kDone;
}

void FileMerge::step() {
    switch (phase_) {
        case Phase::kPlan:
            return plan();
        case Phase::kRemove:
            return remove_next();
        case Phase::kMake:
            return writing_.has_value() ? write_on() : make_next();
        case Phase::kSettle:
            return settle_next();
        case Phase::kDone:
            return;
    }
}

void FileMerge::plan() {
    if (!sides_.base->complete || !sides_.ours->complete || !sides_.theirs->complete) {
        answer_.outcome = MergeAnswer::Outcome::kIncomplete;
        phase_ = Phase::kDone;
        return;
    }
    plan_ = plan_merge({*sides_.base, *sides_.ours, *sides_.theirs}, order_);
    answer_.conflict_count = plan_.conflicts.size();
    for (const auto& [path, conflict] : plan_.conflicts) {
        if (answer_.conflicts.size() < kMergeNamedMax) {
            answer_.conflicts.push_back(conflict);
        }
    }
    answer_.skipped_count = plan_.skipped.size();
    for (const auto& [path, why] : plan_.skipped) {
        if (answer_.skipped.size() < kMergeNamedMax) {
            answer_.skipped.push_back({path, why});
        }
    }
    answer_.unmatched = std::move(plan_.unmatched);
    if (!order_.force && !plan_.conflicts.empty()) {
        answer_.outcome = MergeAnswer::Outcome::kConflicts;
        phase_ = Phase::kDone;
        return;
    }
    for (const auto& [path, step] : plan_.steps) {
        entries_.push_back({&path, &step});
    }
    begin(Phase::kRemove);
}

void FileMerge::begin(Phase phase) {
    phase_ = phase;
    at_ = 0;
}

/// What is in a directory goes before it.
void FileMerge::remove_next() {
    if (at_ == entries_.size()) {
        begin(Phase::kMake);
        return;
    }
    Entry& entry = entries_[entries_.size() - ++at_];
    const auto& have = entry.step->have;
    if (undoing_ ? !entry.touched : !have) {
        return;
    }
    const sandbox::Workspace& workspace = sides_.versions->workspace();
    const auto state = workspace.state(*entry.path);
    if (state.has_error()) {
        return;  // it is not there, or what is made next says why
    }
    const auto& wanted = target(entry);
    const EntryKind kind = state.value().kind;
    // What is undone gives its room back first.
    const bool is_kept = kind == EntryKind::kDirectory || (kind == EntryKind::kFile && !undoing_);
    if (wanted && wanted->kind == kind && is_kept) {
        return;
    }
    if (const Status same = verify(entry, have); same.has_error()) {
        return fail(entry, same.error());
    }
    entry.touched = true;
    sides_.versions->forget(*entry.path);
    if (const Status removed = workspace.remove(*entry.path); removed.has_error()) {
        fail(entry, removed.error());
    }
}

void FileMerge::make_next() {
    if (at_ == entries_.size()) {
        begin(Phase::kSettle);
        return;
    }
    Entry& entry = entries_[at_++];
    const auto& wanted = target(entry);
    if (!wanted || (undoing_ && !entry.touched)) {
        return;
    }
    const auto& have = entry.step->have;
    const bool is_there = have && have->kind == wanted->kind && wanted->kind != EntryKind::kLink;
    if (const Status same = verify(entry, is_there ? have : std::nullopt); same.has_error()) {
        return fail(entry, same.error());
    }
    if (wanted->kind == EntryKind::kFile) {
        return make_file(entry, *wanted);
    }
    entry.touched = true;
    const Status done =
        wanted->kind == EntryKind::kLink
            ? sandbox::make_link(sides_.versions->workspace(), *entry.path, wanted->content)
            : make_directory(entry, *wanted, is_there && !undoing_);
    if (done.has_error()) {
        fail(entry, done.error());
    }
}

Status FileMerge::make_directory(
    const Entry& entry, const KeptFile& directory, bool is_there) const {
    const sandbox::Workspace& workspace = sides_.versions->workspace();
    if (!is_there) {
        BOOST_OUTCOME_TRY(workspace.make_directory(*entry.path));
    }
    // So that files get into it; its own permissions come last.
    return sandbox::set_attributes(
        workspace,
        *entry.path,
        EntryKind::kDirectory,
        {directory.mode | kMergeOwnerAll, directory.modified});
}

void FileMerge::make_file(Entry& entry, const KeptFile& file) {
    const sandbox::Workspace& workspace = sides_.versions->workspace();
    sides_.versions->forget(*entry.path);
    if (!undoing_ && is_same_content(entry.step->have, file)) {
        entry.touched = true;
        const Status done = sandbox::set_attributes(
            workspace, *entry.path, EntryKind::kFile, {file.mode, file.modified});
        if (done.has_error()) {
            fail(entry, done.error());
        }
        return;
    }
    auto begun = workspace.begin_upload(*entry.path);
    if (begun.has_error()) {
        return fail(entry, begun.error());
    }
    writing_.emplace(Writing{std::move(begun).value(), 0});
}

void FileMerge::write_on() {
    Entry& entry = entries_[at_ - 1];
    const KeptFile& file = *target(entry);
    const auto& source = undoing_ ? sides_.versions : sides_.source;
    buffer_.resize(kMergeReadBytes);
    const auto got = source->blobs().read(file.content, writing_->written, buffer_);
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
    } else {
        entry.touched = true;
        done = writing_->file.commit();
    }
    if (done.has_value()) {
        done = sandbox::set_attributes(
            sides_.versions->workspace(),
            *entry.path,
            EntryKind::kFile,
            {file.mode, file.modified});
    }
    writing_.reset();
    if (done.has_error()) {
        fail(entry, done.error());
    }
}

/// The permissions of a directory come when all is in it.
void FileMerge::settle_next() {
    if (at_ == entries_.size()) {
        finish();
        return;
    }
    Entry& entry = entries_[entries_.size() - ++at_];
    const auto& wanted = target(entry);
    if (!wanted || wanted->kind != EntryKind::kDirectory || (undoing_ && !entry.touched)) {
        return;
    }
    const Status done = sandbox::set_attributes(
        sides_.versions->workspace(),
        *entry.path,
        EntryKind::kDirectory,
        {wanted->mode, wanted->modified});
    if (done.has_error()) {
        fail(entry, done.error());
    }
}

/// The guest has not changed it since it was compared. What is undone is not asked.
Status FileMerge::verify(const Entry& entry, const std::optional<KeptFile>& expected) const {
    if (undoing_) {
        return ok();
    }
    const sandbox::Workspace& workspace = sides_.versions->workspace();
    const auto state = workspace.state(*entry.path);
    if (state.has_error() && state.error().code() != ErrorCode::kNotFound) {
        return state.error();
    }
    bool same = state.has_value() == expected.has_value();
    if (same && expected) {
        const FileState& is = state.value();
        // What is in a directory changes its time, and we have done that ourselves.
        same = is.kind == expected->kind && is.mode == expected->mode &&
               (is.kind != EntryKind::kFile ||
                (is.bytes == expected->bytes && is.modified == expected->modified));
    }
    if (same && expected && expected->kind == EntryKind::kLink) {
        const auto leads = workspace.read_link(*entry.path);
        same = leads.has_value() && leads.value() == expected->content;
    }
    if (!same) {
        return Error(ErrorCode::kConflict, "the session changed it meanwhile");
    }
    return ok();
}

void FileMerge::fail(const Entry& entry, const Error& error) {
    if (undoing_) {
        ++answer_.left_count;
        if (answer_.left.size() < kMergeNamedMax) {
            answer_.left.push_back({*entry.path, error.message()});
        }
        return;
    }
    answer_.failure = MergeAnswer::Failure{*entry.path, error.message()};
    undoing_ = true;
    begin(Phase::kRemove);
}

void FileMerge::finish() {
    using Outcome = MergeAnswer::Outcome;
    phase_ = Phase::kDone;
    if (undoing_) {
        answer_.outcome = answer_.left_count > 0 ? Outcome::kPartly : Outcome::kUndone;
        return;
    }
    answer_.change_count = entries_.size();
    for (const Entry& entry : entries_) {
        if (answer_.changes.size() < kMergeNamedMax) {
            const auto& [have, want] = *entry.step;
            answer_.changes.push_back(
                describe_change(*entry.path, have ? &*have : nullptr, want ? &*want : nullptr));
        }
    }
    answer_.base = std::move(plan_.base);
}

}  // namespace cellkeep::checkpoint
