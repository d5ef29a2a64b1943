// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/checkpoint/files/manifest.hpp"

#include <algorithm>

namespace cellkeep::checkpoint {

namespace {

bool is_alike(const KeptFile& one, const KeptFile& other) {
    return one.kind == other.kind && one.mode == other.mode && one.bytes == other.bytes &&
           one.content == other.content;
}

FileChange describe_change(const std::string& path, FileChange::What what, const KeptFile& file) {
    return {path, what, file.kind, what == FileChange::What::kDeleted ? 0 : file.bytes};
}

}  // namespace

std::string_view to_string(Unkept why) {
    switch (why) {
        case Unkept::kKind:
            return "kind";
        case Unkept::kFileBytes:
            return "file_bytes";
        case Unkept::kSpace:
            return "space";
        case Unkept::kUnreadable:
            return "unreadable";
        case Unkept::kChanging:
            return "changing";
    }
    return "unreadable";
}

std::string_view to_string(FileChange::What what) {
    switch (what) {
        case FileChange::What::kCreated:
            return "created";
        case FileChange::What::kModified:
            return "modified";
        case FileChange::What::kDeleted:
            return "deleted";
    }
    return "modified";
}

bool are_alike(const Manifest& one, const Manifest& other) {
    // What is not kept may have changed. What has no contents to keep has none to change.
    const bool is_whole = std::all_of(one.unkept.begin(), one.unkept.end(), [](const auto& each) {
        return each.second == Unkept::kKind;
    });
    if (!one.complete || !other.complete || !is_whole || one.unkept != other.unkept) {
        return false;
    }
    return std::equal(
        one.files.begin(),
        one.files.end(),
        other.files.begin(),
        other.files.end(),
        [](const auto& a, const auto& b) {
            return a.first == b.first && is_alike(a.second, b.second);
        });
}

FileChanges compare(const Manifest& earlier, const Manifest& later) {
    FileChanges changes;
    changes.complete =
        earlier.complete && later.complete && earlier.unkept.empty() && later.unkept.empty();
    const auto add = [&](FileChange change) {
        if (changes.list.size() >= kFileChangesMax) {
            changes.complete = false;
            return;
        }
        changes.list.push_back(std::move(change));
    };
    auto before = earlier.files.begin();
    auto after = later.files.begin();
    while (before != earlier.files.end() || after != later.files.end()) {
        const bool gone = after == later.files.end() ||
                          (before != earlier.files.end() && before->first < after->first);
        const bool made = before == earlier.files.end() ||
                          (after != later.files.end() && after->first < before->first);
        if (gone) {
            // One that is there and could not be kept has not gone.
            if (!later.unkept.contains(before->first)) {
                add(describe_change(before->first, FileChange::What::kDeleted, before->second));
            }
            ++before;
        } else if (made) {
            if (!earlier.unkept.contains(after->first)) {
                add(describe_change(after->first, FileChange::What::kCreated, after->second));
            }
            ++after;
        } else {
            if (!is_alike(before->second, after->second)) {
                add(describe_change(after->first, FileChange::What::kModified, after->second));
            }
            ++before;
            ++after;
        }
    }
    return changes;
}

}  // namespace cellkeep::checkpoint
